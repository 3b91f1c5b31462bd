"""The loop: it learns, repeats itself, resumes exactly, and stops cleanly."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import dign.training.loop
from dign.core.errors import UserError
from dign.models import MODELS
from dign.parallel.devices import check_compiler
from dign.runs.config import RunConfig
from dign.runs.folder import load_run, locked
from dign.training.loop import Diverged, Interrupted, resume, train

SMALL = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 128, "method": "dign", "validate_every": 1}


def config(**changes):
    return RunConfig.from_mapping({**SMALL, **changes})


@contextmanager
def interrupted_after(steps, monkeypatch):
    """Somebody presses Ctrl-C when so many steps are done."""
    original = dign.training.loop._Training._step

    def step_then_interrupt(self, step):
        original(self, step)
        if step + 1 == steps:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(dign.training.loop._Training, "_step", step_then_interrupt)
        yield


def weights(path):
    return load_file(Path(path) / "model.safetensors")


def assert_same_weights(a, b):
    first, second = weights(a), weights(b)
    assert first.keys() == second.keys()
    for name in first:
        assert torch.equal(first[name], second[name]), name


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "undisturbed"
    train(config(), path, quiet=True)
    return path


def test_a_run_folder_tells_all_about_itself(undisturbed):
    run = load_run(undisturbed)
    assert run.finished and len(run.classes) == 10 and run.image_size == (8, 8)
    assert run.config.settings["dign"]["samples"] == 3, (
        "defaults are written out, so that they cannot change under a run"
    )
    assert run.info["cost"]["forward"] == 4 and run.info["cost"]["standard_steps"] == 4
    assert {"commit", "started", "finished", "seconds", "versions", "command"} <= run.info.keys()
    records = [json.loads(line) for line in (undisturbed / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["validation"].keys() == {"accuracy", "loss"}
    trained = [record for record in records if "loss" in record]
    assert trained[-1]["terms"].keys() == {"cross_entropy", "consistency"}
    assert trained[-1]["loss"] == pytest.approx(sum(trained[-1]["terms"].values()), rel=1e-5)
    assert sorted(path.name for path in undisturbed.iterdir() if path.name != "tensorboard") == [
        ".lock", "config.toml", "metrics.jsonl", "model.safetensors", "run.json",
    ]  # fmt: skip


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(undisturbed, tmp_path):
    train(config(), tmp_path / "again", quiet=True)
    assert_same_weights(undisturbed, tmp_path / "again")
    train(config(seed=1), tmp_path / "other", quiet=True)
    assert not torch.equal(weights(undisturbed)["1.linear.weight"], weights(tmp_path / "other")["1.linear.weight"])


@pytest.mark.parametrize("stop_after", [1, 7, 10, 13])
def test_an_interrupted_run_resumes_to_the_same_weights(undisturbed, tmp_path, monkeypatch, stop_after):
    """Ten steps make an epoch: 7 and 13 lie in the middle of one."""
    with interrupted_after(stop_after, monkeypatch), pytest.raises(Interrupted, match=f"step {stop_after} of 20"):
        train(config(), tmp_path / "run", quiet=True)
    assert not load_run(tmp_path / "run").finished
    resume(tmp_path / "run", quiet=True)
    assert_same_weights(undisturbed, tmp_path / "run")


def test_a_killed_process_resumes_to_the_same_weights(undisturbed, tmp_path):
    """kill -9 in the middle of it all, several times, with a checkpoint after every step."""
    out = tmp_path / "run"
    words = ["train", "digits", "--size", "8", "--epochs", "2", "--batch-size", "128", "--validate-every", "1"]
    commands = [[*words, "--checkpoint-seconds", "0", "--out", str(out)], ["train", "--resume", str(out)]]
    for command in (commands[0], commands[1]):
        process = subprocess.Popen([sys.executable, "-m", "dign", *command, "--quiet"])
        while process.poll() is None and _steps_done(out) < 4:
            time.sleep(0.002)
        process.kill()
        process.wait()
    resume(out, quiet=True)
    assert_same_weights(undisturbed, out)
    assert not [path.name for path in out.iterdir() if path.name.endswith(".partial")]


def _steps_done(out):
    """How many checkpoints were seen to be written, judged by the file's changing."""
    stamp = (out / "checkpoint.safetensors").stat().st_mtime_ns if (out / "checkpoint.safetensors").exists() else None
    seen = _steps_done.__dict__.setdefault(str(out), set())
    seen.add(stamp)
    return len(seen)


def test_metrics_of_a_resumed_run_have_no_gap_and_no_repetition(tmp_path, monkeypatch):
    monkeypatch.setattr(dign.training.loop, "LOG_EVERY", 1)
    original = dign.training.loop._Training._step

    def fail_at_eight(self, step):
        if step == 8:
            raise RuntimeError("power cut")
        original(self, step)

    monkeypatch.setattr(dign.training.loop._Training, "_step", fail_at_eight)
    monkeypatch.setattr(dign.training.loop._Training, "_save_checkpoint", lambda self, done: None)
    with pytest.raises(RuntimeError):
        train(config(), tmp_path / "run", quiet=True)
    monkeypatch.undo()
    monkeypatch.setattr(dign.training.loop, "LOG_EVERY", 1)
    with open(tmp_path / "run" / "metrics.jsonl", "a") as file:
        file.write('{"step": 9, "ep')
    resume(tmp_path / "run", quiet=True)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    steps = [record["step"] for record in map(json.loads, lines) if "loss" in record]
    assert steps == list(range(1, 21))


def test_resuming_a_finished_run_changes_nothing(undisturbed):
    before = (undisturbed / "model.safetensors").stat().st_mtime_ns
    resume(undisturbed, quiet=True)
    assert (undisturbed / "model.safetensors").stat().st_mtime_ns == before


def test_a_run_that_another_process_finishes_meanwhile_is_left_as_it_is(undisturbed, tmp_path, monkeypatch):
    path = tmp_path / "run"
    shutil.copytree(undisturbed, path)
    (path / "model.safetensors").rename(tmp_path / "finished")

    @contextmanager
    def finished_by_another(folder):
        (tmp_path / "finished").rename(folder / "model.safetensors")
        yield

    monkeypatch.setattr(dign.training.loop, "locked", finished_by_another)
    assert not load_run(path).finished
    assert resume(path, quiet=True).finished
    for name in ("metrics.jsonl", "model.safetensors", "run.json"):
        assert (path / name).read_bytes() == (undisturbed / name).read_bytes()


def test_an_existing_folder_is_never_written_over(undisturbed, tmp_path):
    with pytest.raises(UserError, match="exists already"):
        train(config(), undisturbed, quiet=True)
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        train(config(), tmp_path, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_a_folder_whose_making_was_cut_short_can_be_used_again(tmp_path):
    for name in (".lock", "run.json", ".config.toml.partial"):
        (tmp_path / name).write_text("{")
    assert train(config(epochs=1), tmp_path, quiet=True).finished


def test_two_processes_cannot_train_in_one_folder(undisturbed, tmp_path):
    with locked(tmp_path / "run"), pytest.raises(UserError, match="Another process"):
        train(config(), tmp_path / "run", quiet=True)


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_step(tmp_path):
    with pytest.raises(Diverged, match=r"not finite (at|after) step \d+") as caught:
        train(config(lr=1e30, momentum=0.0), tmp_path / "run", quiet=True)
    assert "checkpoint" in str(caught.value)
    assert not load_run(tmp_path / "run").finished


def test_keep_best_ends_with_the_weights_of_the_best_validation(tmp_path):
    run = train(config(keep="best", epochs=3, schedule="constant", lr=0.3), tmp_path / "run", quiet=True)
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    best = max(record["validation"]["accuracy"] for record in records if "validation" in record)
    data = run.data()
    scores = dign.training.loop.validate(run.model(), run.method(), data.validation, torch.device("cpu"), seed=0)
    assert scores["accuracy"] == pytest.approx(best)
    assert not (run.path / "best.safetensors").exists()


@pytest.mark.parametrize("changes", [{"precision": "bf16"}, {"channels_last": False}, {"schedule": "cosine"}])
def test_other_ways_to_run(tmp_path, changes):
    assert train(config(epochs=1, **changes), tmp_path / "run", quiet=True).finished


def test_standard_training_learns_the_digits(tmp_path):
    run = train(
        RunConfig.from_mapping({"data": "digits", "size": 8, "method": "standard", "epochs": 15}),
        tmp_path / "run",
        quiet=True,
    )
    data = run.data()
    scores = dign.training.loop.validate(run.model(), run.method(), data.test, torch.device("cpu"), seed=0)
    assert scores["accuracy"] > 95


def test_a_checkpoint_of_another_model_is_named_as_such(undisturbed, tmp_path):
    from dign.models import build
    from dign.runs.checkpoints import load_weights

    with pytest.raises(UserError, match="belongs to another model"):
        load_weights(undisturbed / "model.safetensors", build("resnet18", classes=10, image_size=(8, 8)))
    with pytest.raises(UserError, match="shape"):
        load_weights(undisturbed / "model.safetensors", build("tinynet", classes=11, image_size=(8, 8)))
    (tmp_path / "broken.safetensors").write_bytes((undisturbed / "model.safetensors").read_bytes()[:-10])
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_weights(tmp_path / "broken.safetensors", build("tinynet", classes=10, image_size=(8, 8)))


def test_small_images_come_first(tmp_path, monkeypatch):
    seen = []
    original = dign.training.loop._Training._batch

    def batch(self, step):
        x, y = original(self, step)
        seen.append(x.shape[-2:])
        return x, y

    monkeypatch.setattr(dign.training.loop._Training, "_batch", batch)
    run = train(config(size=16, small_first=0.5), tmp_path / "run", quiet=True)
    half = len(seen) // 2
    assert set(seen[:half]) == {(12, 12)} and set(seen[half:]) == {(16, 16)}
    assert run.image_size == (16, 16)


def test_a_net_for_one_size_refuses_small_images(tmp_path, monkeypatch):
    def build_for_one_size(*arguments, **named):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 10))

    monkeypatch.setattr("dign.training.setup.build", build_for_one_size)
    with pytest.raises(UserError, match=r"tinynet takes no smaller images than 16x16 \(.*\): leave small_first out"):
        train(config(size=16, small_first=0.5), tmp_path / "run")
    with pytest.raises(UserError, match="Images of 8x8 are too small to begin with smaller ones"):
        train(config(size=8, small_first=0.5), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_compiling_without_a_compiler_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="compile needs the C\\+\\+ compiler 'no-such-compiler'"):
        train(config(compile=True, device="cpu"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("CC", "no-such-compiler-either")
    monkeypatch.setattr("dign.parallel.devices.find_spec", lambda name: name)
    with pytest.raises(UserError, match="compile needs the C compiler 'no-such-compiler-either'"):
        check_compiler(torch.device("cuda"))
    monkeypatch.setattr("dign.parallel.devices.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs Triton"):
        check_compiler(torch.device("cuda"))


def test_a_run_that_goes_on_elsewhere_says_so(tmp_path, monkeypatch, capsys):
    with interrupted_after(1, monkeypatch), pytest.raises(Interrupted):
        train(config(epochs=1), tmp_path / "run", quiet=True)
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (info["machine"]["device"], info["machine"]["precision"]) == ("cpu", "32")
    info["machine"] |= {"device": "NVIDIA H100", "precision": "bf16"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    resume(tmp_path / "run")
    said = " ".join(capsys.readouterr().err.split())
    assert "began with device NVIDIA H100 and goes on with cpu" in said and "precision bf16 and goes on with 32" in said


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"size": 1}, "tinynet cannot be trained with 128 images of 1x1 at once"),
        ({"model": "densenet121", "size": 4, "method": "standard"}, "cannot be trained with 128 images of 4x4 at once"),
        ({"model": "resnet18", "batch_size": 1, "method": "standard"}, "with 1 image of 8x8 at once .*--batch-size"),
        ({"model": "resnet18", "batch_size": 1, "method": "at"}, "with 1 image of 8x8 at once .*--batch-size"),
        ({"keep": "best", "validation": 0}, "keep = best chooses by validation images, and there are none"),
    ],
)
def test_what_cannot_be_trained_is_said_before_anything_is_written(tmp_path, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        train(config(**{"batch_size": 128, "size": 8, **changes}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_image_at_a_time_can_be_trained_where_its_views_pass_together(tmp_path, monkeypatch):
    monkeypatch.setattr("dign.training.loop.steps_per_epoch", lambda config, data: 2)
    run = train(config(model="resnet18", batch_size=1, size=8, method="dign", epochs=1, validation=0), tmp_path / "run")
    assert run.finished


@pytest.fixture
def dropping(monkeypatch):
    """tinynet with dropout, which draws from torch's global generator."""
    plain = MODELS["tinynet"]

    def make(classes, image_size):
        body = plain(classes, image_size)
        body.linear = torch.nn.Sequential(torch.nn.Dropout(0.5), body.linear)
        return body

    monkeypatch.setitem(MODELS, "tinynet", make)


def test_a_model_that_draws_itself_repeats_itself_and_leaves_the_global_generator_alone(
    dropping, tmp_path, monkeypatch
):
    before = torch.get_rng_state()
    train(config(epochs=1), tmp_path / "undisturbed", quiet=True)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(12345)
    with interrupted_after(5, monkeypatch), pytest.raises(Interrupted):
        train(config(epochs=1), tmp_path / "run", quiet=True)
    torch.manual_seed(67890)
    resume(tmp_path / "run", quiet=True)
    assert_same_weights(tmp_path / "undisturbed", tmp_path / "run")
