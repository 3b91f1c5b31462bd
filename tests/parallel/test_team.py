"""Two processes give what one gives, agree on everything, and go on when one of them has died."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from team_work import COMPILED, EVALUATION, LONG, METHODS, OWN, SMALL, TWICE, train_all

import dign.training.loop
from dign.core.errors import UserError
from dign.models import MODELS
from dign.parallel.team import Team
from dign.runs.folder import load_run

pytestmark = pytest.mark.slow

WORK = Path(__file__).with_name("team_work.py")
AT_IMAGES = {"gradient-regularization": 1e-6, "cure": 1e-6, "llr": 5e-3}
"""Losses made of gradients at the images, which stay float32, and how far they may be apart. LLR's search follows signs
of small differences of such gradients, which rounding may turn.
"""


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """The folder in which two processes have done all of team_work.py."""
    folder = tmp_path_factory.mktemp("two")
    command = [sys.executable, str(WORK), str(folder)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def prepared():
    """This process as `prepare` leaves those two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dign.training.loop, "LOG_EVERY", 2)
        for name, model in OWN.items():
            patch.setitem(MODELS, name, model)
        yield


@pytest.fixture(scope="module")
def one(prepared, tmp_path_factory):
    """The same runs in this process."""
    folder = tmp_path_factory.mktemp("one")
    train_all(folder, devices=1)
    return folder


def curve(run):
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {(record["step"], name): value for record in records for name, value in numbers(record)}


def numbers(record):
    yield from record.get("terms", {}).items()
    yield from ((name, record[name]) for name in ("loss", "lr") if name in record)
    if "validation" in record:
        yield "validation", record["validation"]["loss"]


@pytest.mark.parametrize("name", [*METHODS, "apart", "synchronized", *(f"synchronized-{each}" for each in TWICE)])
def test_two_processes_train_as_one(one, two, name):
    """Of a batch of 400 each sees 200: losses, rates and weights are those of one process, up to float64's rounding."""
    alone, shared = curve(one / name), curve(two / name)
    assert alone.keys() == shared.keys() and {step for step, _ in alone} == {2, 3, 4, 6}
    method = name.removeprefix("synchronized-")
    weight, least = (1e-3, 2e-4) if method in AT_IMAGES else (1e-9, 1e-12)
    assert shared == pytest.approx(alone, rel=AT_IMAGES.get(method, 1e-9))
    first, second = (load_file(folder / name / "model.safetensors") for folder in (one, two))
    assert first.keys() == second.keys()
    for key in first:
        torch.testing.assert_close(second[key], first[key], rtol=weight, atol=least)


@pytest.mark.parametrize("name", COMPILED)
def test_a_compiled_step_is_shared_as_one_that_is_not(two, name):
    """Where the backend changes nothing, neither does the exchange of gradients: bit for bit."""
    compiled, eager = (two / f"{name}-{way}" / "model.safetensors" for way in ("compiled", "eager"))
    assert compiled.read_bytes() == eager.read_bytes()


def test_the_first_process_writes_and_both_know_it(two):
    told = [json.loads((two / f"process-{rank}.json").read_text()) for rank in range(2)]
    assert [each["count"] for each in told] == [2, 2]
    assert load_run(two / "dign").info["processes"] == 2
    assert sorted(path.name for path in (two / "dign").iterdir()) == [
        ".lock", "calibration.json", "config.toml", "metrics.jsonl", "model.safetensors", "run.json",
    ]  # fmt: skip
    lines = (two / "dign" / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == len((two / "standard" / "metrics.jsonl").read_text().splitlines()) == 6


def test_what_one_process_notices_ends_both(two):
    first, second = (json.loads((two / f"process-{rank}.json").read_text()) for rank in range(2))
    stopped = f"Stopped after step 3 of 6. To resume: dign train --resume {two / 'interrupted'}\n"
    assert first["interrupted"] == [[130, stopped], [0, ""]]
    assert second["interrupted"] == [[0, ""], [0, ""]], "Fabric kills the first process when another one fails"
    kinds = ["UserError", "Diverged", "ResumableError", "OSError"]
    assert [mistake.split(":")[0] for mistake in first["mistakes"]] == kinds
    assert all(mistake.startswith("ReportedByRankZero: ") for mistake in second["mistakes"])
    assert "401 images cannot be shared out equally among 2 processes" in first["mistakes"][0]


def test_an_interrupted_run_goes_on_to_the_same_weights(two):
    for name in ("model.safetensors", "config.toml"):
        assert (two / "interrupted" / name).read_bytes() == (two / "dign" / name).read_bytes()


def test_a_shared_evaluation_counts_exactly_what_one_process_counts(prepared, two, tmp_path, dign_command):
    shutil.copytree(two / "rse", tmp_path / "rse")
    _, _, said = dign_command("evaluate", tmp_path / "rse", *EVALUATION)
    alone, shared = (json.loads((folder / "rse" / "results.json").read_text()) for folder in (tmp_path, two))
    for results in (alone, shared):
        for name in ("time", "seconds", "commit"):
            results["evaluation"].pop(name)
    assert shared == alone
    assert (tmp_path / "rse" / "examples.json").read_bytes() == (two / "rse" / "examples.json").read_bytes()
    told = [json.loads((two / f"process-{rank}.json").read_text())["evaluated"] for rank in range(2)]
    assert told == [[0, said.replace(str(tmp_path), str(two))], [0, ""]]


def command_line(changes, out):
    values = {**SMALL, **changes}
    settings = [f"--{key}={value}" for table in values.pop("settings", {}).values() for key, value in table.items()]
    options = [f"--{key.replace('_', '-')}={value}" for key, value in values.items() if key != "data"]
    return ["train", values["data"], *options, *settings, "--out", str(out)]


def wait_for(path, process):
    deadline = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


def children(parent):
    found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True).stdout.split()
    return [int(number) for number in found]


def test_torchrun_starts_again_after_a_kill_and_the_outcome_is_that_of_an_undisturbed_run(two, tmp_path):
    out = tmp_path / "killed"
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--max-restarts", "1"]
    command = [*torchrun, "-m", "dign", *command_line(LONG, out), "-q"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_for(out / "checkpoint.safetensors", process)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    errors = process.communicate(timeout=300)[1]
    assert process.returncode == 0, errors
    assert "Another of the 2 processes has died" in errors and "Traceback" not in errors
    assert (out / "model.safetensors").read_bytes() == (two / "undisturbed" / "model.safetensors").read_bytes()
    assert not (out / "checkpoint.safetensors").exists()


def test_a_batch_that_does_not_divide_is_refused():
    Team(rank=0, world_size=3).check_divides(12)
    with pytest.raises(UserError, match="choose a batch size that 3 divides"):
        Team(rank=0, world_size=3).check_divides(13)
