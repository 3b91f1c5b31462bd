"""Where a grid's runs are stored: under a local folder or a URL."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from dign.grid.job import INTERRUPTED, Job, run_job
from dign.grid.scheduling import read_states
from dign.grid.state import Stage
from dign.grid.storage import RemoteStore, _Mirror
from dign.runs.folder import SETUP_FILES

pytestmark = pytest.mark.slow


def job_of(plan, out, number=0):
    return Job.of(plan.runs[number], out, threads=1)


def stage(plan, out):
    return read_states(plan.runs, out)[plan.runs[0].name].stage


def assert_same_weights(a, b):
    first, second = (load_file(Path(path) / "model.safetensors") for path in (a, b))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_results_land_at_a_url_and_a_run_goes_on_from_there(undisturbed, tmp_path, interrupt_at_step):
    """file:// goes the way of any other fsspec URL: a scratch folder that is fetched and sent off."""
    plan, out, first = undisturbed
    url = f"file://{tmp_path}/results"
    patched = interrupt_at_step(11)
    assert run_job(job_of(plan, url)).state == INTERRUPTED
    assert stage(plan, url) is Stage.BEGUN
    assert (tmp_path / "results" / plan.runs[0].name / "checkpoint.safetensors").exists()
    patched.undo()
    outcome = run_job(job_of(plan, url))
    assert outcome.summary == first.summary
    assert stage(plan, url) is Stage.DONE
    arrived = tmp_path / "results" / plan.runs[0].name
    assert_same_weights(out / plan.runs[0].name, arrived)
    left = {path.name for path in arrived.iterdir()}
    assert left >= {"config.toml", "run.json", "metrics.jsonl", "model.safetensors", "results.json"}
    assert not [name for name in left if name.startswith((".", "checkpoint")) or name.endswith(".partial")]


def test_a_checkpoint_never_arrives_newer_than_what_lies_beside_it(tmp_path):
    store = RemoteStore(f"file://{tmp_path}/there")
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "checkpoint.safetensors").write_text("step 10")
    (folder / "metrics.jsonl").write_text("up to 10")
    send = store.send

    def sending(local, target):
        send(local, target)
        if local.name == "metrics.jsonl":  # the job goes on meanwhile
            (folder / "metrics.jsonl").write_text("up to 20")
            (folder / "new").write_text("step 20")
            (folder / "new").replace(folder / "checkpoint.safetensors")

    store.send = sending
    mirror = _Mirror(store, "run", folder)
    mirror.send()
    there = tmp_path / "there" / "run"
    assert (there / "metrics.jsonl").read_text() == "up to 10"
    assert (there / "checkpoint.safetensors").read_text() == "step 10"
    store.send = send
    (folder / "checkpoint.safetensors").unlink()
    mirror.send(final=True)
    assert sorted(path.name for path in there.iterdir()) == ["metrics.jsonl"]


def test_a_run_whose_upload_is_cut_short_has_not_begun_or_can_be_resumed(tmp_path):
    """A host may die between any two files: a run without its configuration holds nothing but what comes before it."""
    store, folder, arrived = RemoteStore(f"file://{tmp_path}/there"), tmp_path / "here", []
    folder.mkdir()
    for name in ("metrics.jsonl", "config.toml", "checkpoint.safetensors", "a.txt", "run.json", "training_images.txt"):
        (folder / name).write_text(name)
    store.send = lambda local, target: arrived.append(target.rpartition("/")[2])
    _Mirror(store, "run", folder).send()
    assert arrived[:3] == ["run.json", "training_images.txt", "config.toml"] and arrived[-1] == "checkpoint.safetensors"
    assert set(arrived[:2]) <= SETUP_FILES
