"""The loop: it learns, repeats itself, resumes exactly, and stops cleanly."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import dign.training.loop
import dign.training.setup
from dign.core.errors import UserError
from dign.data.crops import RandomCrop
from dign.data.framing import Framing
from dign.data.sources.arrays import from_arrays
from dign.methods import Standard
from dign.models import MODELS
from dign.runs.classifier import load_model
from dign.runs.config import RunConfig
from dign.runs.epochs import choose_epochs
from dign.runs.folder import load_run
from dign.runs.predict import read_images
from dign.training.health import Diverged
from dign.training.interrupts import Interrupted
from dign.training.train import resume, train

SMALL = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 128, "method": "dign", "validate_every": 1}


def config(**changes):
    return RunConfig.from_mapping({**SMALL, **changes})


@contextmanager
def interrupted_after(steps, monkeypatch):
    """Somebody presses Ctrl-C when so many steps are done."""
    original = dign.training.loop.TrainingLoop._step

    def step_then_interrupt(self, step):
        original(self, step)
        if step + 1 == steps:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(dign.training.loop.TrainingLoop, "_step", step_then_interrupt)
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


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(undisturbed, tmp_path):
    train(config(), tmp_path / "again", quiet=True)
    assert_same_weights(undisturbed, tmp_path / "again")
    train(config(seed=1), tmp_path / "other", quiet=True)
    assert not torch.equal(weights(undisturbed)["1.linear.weight"], weights(tmp_path / "other")["1.linear.weight"])


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [1, 7, 10, 13])
def test_an_interrupted_run_resumes_to_the_same_weights(undisturbed, tmp_path, monkeypatch, stop_after):
    """Ten steps make an epoch: 7 and 13 are in the middle of one."""
    with interrupted_after(stop_after, monkeypatch), pytest.raises(Interrupted, match=f"step {stop_after} of 20"):
        train(config(), tmp_path / "run", quiet=True)
    assert not load_run(tmp_path / "run").finished
    resume(tmp_path / "run", quiet=True)
    assert_same_weights(undisturbed, tmp_path / "run")


@pytest.mark.slow
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


@pytest.mark.slow
def test_metrics_of_a_resumed_run_have_no_gap_and_no_repetition(tmp_path, monkeypatch):
    monkeypatch.setattr(dign.training.loop, "LOG_EVERY", 1)
    original = dign.training.loop.TrainingLoop._step

    def fail_at_eight(self, step):
        if step == 8:
            raise RuntimeError("power cut")
        original(self, step)

    monkeypatch.setattr(dign.training.loop.TrainingLoop, "_step", fail_at_eight)
    monkeypatch.setattr(dign.training.loop.TrainingLoop, "_save_checkpoint", lambda self, done: None)
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


def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_step(tmp_path):
    with pytest.raises(Diverged, match=r"not finite (at|after) step \d+") as caught:
        train(config(lr=1e30, momentum=0.0), tmp_path / "run", quiet=True)
    assert "checkpoint" in str(caught.value)
    assert not load_run(tmp_path / "run").finished


@pytest.mark.slow
def test_keep_best_ends_with_the_weights_of_the_best_validation(tmp_path):
    run = train(config(keep="best", epochs=3, schedule="constant", lr=0.3), tmp_path / "run", quiet=True)
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    best = max(record["validation"]["accuracy"] for record in records if "validation" in record)
    data = run.data()
    scores = dign.training.loop.validate(run.model(), run.method(), data.validation, torch.device("cpu"), seed=0)
    assert scores["accuracy"] == pytest.approx(best)
    assert not (run.path / "best.safetensors").exists()


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"precision": "bf16"}, {"channels_last": False}, {"schedule": "cosine"}])
def test_other_ways_to_run(tmp_path, changes):
    assert train(config(epochs=1, **changes), tmp_path / "run", quiet=True).finished


@pytest.mark.slow
def test_standard_training_learns_the_digits(tmp_path):
    run = train(
        RunConfig.from_mapping({"data": "digits", "size": 8, "method": "standard", "epochs": 15}),
        tmp_path / "run",
        quiet=True,
    )
    data = run.data()
    scores = dign.training.loop.validate(run.model(), run.method(), data.test, torch.device("cpu"), seed=0)
    assert scores["accuracy"] > 95


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "g++")), reason="there is no C++ compiler")
def test_a_compiled_run_takes_the_same_steps_and_resumes_to_the_bit(tmp_path, monkeypatch):
    """The real compiler: its first step has the loss of one that is not compiled, up to rounding."""
    monkeypatch.setattr(dign.training.loop, "LOG_EVERY", 1)
    changes = {"method": "standard", "epochs": 1, "validate_every": 0, "calibrate": "none"}
    train(config(**changes), tmp_path / "eager", quiet=True)
    train(config(**changes, compile=True), tmp_path / "whole", quiet=True)
    with interrupted_after(4, monkeypatch), pytest.raises(Interrupted):
        train(config(**changes, compile=True), tmp_path / "run", quiet=True)
    torch._dynamo.reset()  # a process of its own compiles again
    resume(tmp_path / "run", quiet=True)
    assert_same_weights(tmp_path / "whole", tmp_path / "run")
    assert first_loss(tmp_path / "whole") == pytest.approx(first_loss(tmp_path / "eager"), rel=1e-5)


def first_loss(path):
    return json.loads((path / "metrics.jsonl").read_text().splitlines()[0])["loss"]


def test_a_run_that_is_resumed_on_another_device_says_so(tmp_path, monkeypatch, capsys):
    with interrupted_after(1, monkeypatch), pytest.raises(Interrupted):
        train(config(epochs=1), tmp_path / "run", quiet=True)
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (info["machine"]["device"], info["machine"]["precision"]) == ("cpu", "32")
    info["machine"] |= {"device": "NVIDIA H100", "precision": "bf16"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(info))
    resume(tmp_path / "run")
    said = " ".join(capsys.readouterr().err.split())
    assert "was started with device NVIDIA H100 and is resumed with cpu" in said
    assert "was started with precision bf16 and is resumed with 32" in said


@pytest.mark.slow
def test_one_image_at_a_time_can_be_trained_where_its_views_pass_together(tmp_path, monkeypatch):
    monkeypatch.setattr("dign.training.setup.steps_per_epoch", lambda config, data: 2)
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


@pytest.mark.slow
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


def test_a_loss_that_ends_no_better_than_guessing_is_noted(tmp_path, capsys):
    train(config(epochs=1, lr=3.0, schedule="constant", method="standard"), tmp_path / "run")
    said = " ".join(capsys.readouterr().err.split())
    assert "not below that of guessing among 10 classes (2.30)" in said and "Try a smaller `lr` than 3;" in said


def test_a_run_that_learns_gets_no_such_note(tmp_path, capsys):
    train(config(epochs=4, method="standard"), tmp_path / "run")
    assert "guessing" not in capsys.readouterr().err


PHOTOS = {"size": 16, "scale": 0.3, "crop_fraction": 0.8, "batch_size": 4, "model": "tinynet", "method": "standard"}


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Two classes of eight noisy pictures, wider than high."""
    folder = tmp_path_factory.mktemp("photographs")
    pixels = np.random.default_rng(0).integers(0, 256, (16, 24, 40, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        path = folder / ("a", "b")[number % 2] / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.fromarray(each).save(path)
    return f"folder:{folder}"


def test_training_on_crops_is_resumed_to_the_same_weights_with_any_number_of_workers(
    photographs, tmp_path, monkeypatch
):
    settings = config(**PHOTOS, data=photographs, epochs=3, workers=0)
    train(settings, tmp_path / "alone", quiet=True)
    with interrupted_after(4, monkeypatch), pytest.raises(Interrupted):
        train(dataclasses.replace(settings, workers=2), tmp_path / "two", quiet=True)
    resume(tmp_path / "two", quiet=True)
    assert_same_weights(tmp_path / "alone", tmp_path / "two")
    assert load_run(tmp_path / "alone").info["seconds_waited"] > 0


def test_training_on_crops_sees_other_parts_of_a_picture_in_every_epoch(photographs, tmp_path, monkeypatch):
    seen = []
    read = RandomCrop.read

    def watch(self, file, seed, epoch, number):
        crop = read(self, file, seed, epoch, number)
        seen.append((epoch, file.name, crop.tobytes()))
        return crop

    monkeypatch.setattr(RandomCrop, "read", watch)
    train(config(**PHOTOS, data=photographs, epochs=2, workers=0), tmp_path / "run", quiet=True)
    training_images = load_run(tmp_path / "run").info["training_images"]
    assert len({(epoch, name) for epoch, name, _ in seen}) == len(seen) == 2 * (training_images // 4 * 4)
    assert len({crop for _, _, crop in seen}) == len(seen)


def test_a_run_keeps_how_its_pictures_are_framed(photographs, tmp_path):
    run = train(config(**PHOTOS, data=photographs, epochs=1, workers=0, fit="pad"), tmp_path / "run", quiet=True)
    assert run.framing == Framing("pad", 0.8)
    file = next(Path(photographs.removeprefix("folder:")).glob("a/*.png"))
    pixels = read_images([file], run.image_size, load_model(run.path).framing)
    splits = run.data()
    images = torch.cat([splits.train.images, splits.validation.images, splits.test.images])
    assert (images == pixels).flatten(1).all(1).any(), "predicting sees the pixels that evaluating sees"
    assert pixels[0, :, 0, 8].tolist() == [128, 128, 128], "wider than high, so there is padding above"


def test_a_training_that_diverges_is_named_while_it_runs(tmp_path, capsys):
    train(config(method="standard", lr=20.0, epochs=1, schedule="constant", batch_size=32), tmp_path / "run")
    notes = capsys.readouterr().err
    assert notes.count("training diverges. Stop it, and try a smaller `lr` than 20") == 1


def test_epochs_that_are_left_open_follow_the_number_of_images(photographs, tmp_path):
    run = train(
        config(**{**PHOTOS, "batch_size": 8}, data=photographs, epochs=0, workers=0), tmp_path / "run", quiet=True
    )
    assert run.config.epochs == choose_epochs(run.info["training_images"], 8)


def test_balanced_classes_are_drawn_equally_often(tmp_path, monkeypatch):
    seen = []
    step = Standard.__call__

    def watch(self, model, x, y, **options):
        seen.append(y)
        return step(self, model, x, y, **options)

    monkeypatch.setattr(Standard, "__call__", watch)
    labels = [0] * 60 + [1] * 12
    data = from_arrays("lopsided", np.zeros((72, 8, 8, 3), np.uint8), labels, ["a", "b"], validation=0.2)
    monkeypatch.setattr(dign.training.setup, "load_run_data", lambda config: data)
    settings = config(method="standard", epochs=2, batch_size=4, balance=True, keep="best", validate_every=1)
    run = train(settings, tmp_path / "run", quiet=True)
    counts = torch.cat(seen).bincount().tolist()
    assert abs(counts[0] - counts[1]) <= 8, counts
    assert run.validation()["balanced_accuracy"] == 50, "all images are alike, so one class is right and one wrong"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes", [{"ema": 0.9, "accumulate": 2}, {"precision": "16", "clip": 0.5, "ema": 0.5}], ids=["float32", "float16"]
)
def test_averaging_accumulation_clipping_and_scaling_resume_to_the_bit(tmp_path, monkeypatch, changes):
    settings = config(epochs=1, method="standard", validate_every=0, **changes)
    train(settings, tmp_path / "whole", quiet=True)
    with interrupted_after(4, monkeypatch), pytest.raises(Interrupted):
        train(settings, tmp_path / "run", quiet=True)
    resume(tmp_path / "run", quiet=True)
    assert_same_weights(tmp_path / "whole", tmp_path / "run")


@pytest.fixture
def linear(monkeypatch):
    """A model without batch norm, whose gradient is the sum of its images' gradients."""
    size = 3 * 8 * 8
    monkeypatch.setitem(
        MODELS,
        "tinynet",
        lambda classes, image_size: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size, 10)),
    )


PLAIN = {"method": "standard", "epochs": 1, "crop": 0, "rotation": 0.0, "weight_decay": 0.0, "validate_every": 0}


def test_parts_of_a_batch_add_up_to_the_gradient_of_the_batch(linear, tmp_path):
    for parts in (1, 4):
        train(config(**PLAIN, accumulate=parts), tmp_path / str(parts), quiet=True)
    whole, parts = weights(tmp_path / "1"), weights(tmp_path / "4")
    for name in whole:
        torch.testing.assert_close(whole[name], parts[name], atol=1e-5, rtol=1e-4)


def test_a_clipped_gradient_moves_the_weights_no_farther_than_its_norm(linear, tmp_path):
    moved = {}
    for clip in (0.0, 1e-3):
        settings = config(**PLAIN, clip=clip, lr=1.0, momentum=0.0, schedule="constant")
        run = train(settings, tmp_path / str(clip), quiet=True)
        before, after = run.untrained_model().state_dict(), weights(run.path)
        moved[clip] = sum((after[name] - before[name]).square().sum() for name in after).sqrt().item()
    assert moved[1e-3] <= 10 * 1e-3 * 1.001 < moved[0.0], "ten steps"


@pytest.mark.slow
def test_an_average_of_the_last_step_alone_is_that_of_the_run_without_one(linear, tmp_path):
    for ema in (0.0, 1e-12, 0.99):
        train(config(**PLAIN, ema=ema), tmp_path / str(ema), quiet=True)
    assert_same_weights(tmp_path / "0.0", tmp_path / "1e-12")
    assert not torch.equal(weights(tmp_path / "0.0")["1.1.weight"], weights(tmp_path / "0.99")["1.1.weight"])


def test_too_little_memory_is_one_sentence_and_keeps_the_checkpoint(tmp_path, monkeypatch):
    original = dign.training.loop.TrainingLoop._step

    def out_of_memory(self, step):
        if step == 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        original(self, step)

    monkeypatch.setattr(dign.training.loop.TrainingLoop, "_step", out_of_memory)
    with pytest.raises(UserError, match=r"128 images.*`batch_size=64`.*`accumulate=2`.*last checkpoint is") as caught:
        train(config(checkpoint_seconds=0.0), tmp_path / "run", quiet=True)
    assert str(load_run(tmp_path / "run").checkpoint) in str(caught.value)
    monkeypatch.undo()
    assert resume(tmp_path / "run", quiet=True).finished


def test_terms_that_change_on_the_way_are_logged_apart(tmp_path):
    """Before `start` DiGN learns from clean images, then from copies: no record mixes the two, and runs resume."""
    changes = {"start": 0.5, "learns_from": "copies", "samples": 1}
    run = train(config(method="dign", settings={"dign": changes}), tmp_path / "run", quiet=True)
    records = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    terms = ["+".join(record["terms"]) for record in records if "terms" in record]
    assert list(dict.fromkeys(terms)) == ["cross_entropy+consistency", "cross_entropy_of_noisy+consistency"]
    half = next(record["step"] for record in reversed(records) if "cross_entropy" in record.get("terms", {}))
    assert half == records[-1]["step"] // 2
