"""Runs, weights, results, hub folders, configurations and options: small valid ones, and how they are read."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import tomllib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from fuzz_samples import picture, results

import dign.training.loop
from dign.cli.options import parse_words
from dign.data import from_arrays
from dign.evaluation.conditions import choose_corruptions, parse_severities
from dign.grid.plan import read_plan
from dign.grid.state import read_state
from dign.grid.storage import LocalStore
from dign.methods.factory import assign_options, make_method
from dign.models import build
from dign.publish.model_card import read_results
from dign.report.make import report_text, study_of
from dign.runs.checkpoints import load_weights, save_weights
from dign.runs.classifier import load_model
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.runs.toml_files import read_toml
from dign.training.interrupts import Interrupted
from dign.training.logger import _drop_records_after
from dign.training.starting_weights import load_starting_weights
from dign.training.trackers import get_or_create_id
from dign.training.train import resume, train

RUN = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard", "track": "none"}


def make_run(folder: Path) -> None:
    train(RunConfig.from_mapping(RUN), folder / "run", quiet=True)
    _lift(folder / "run")
    (folder / "results.json").write_text(json.dumps(results()))


def read_run(folder: Path) -> None:
    run = load_run(folder)
    run.method()
    _finite(run.model())
    assert all(isinstance(name, str) for name in run.classes)


def make_weights(folder: Path) -> None:
    save_weights(folder / "model.safetensors", _model())


@cache
def _model() -> torch.nn.Module:
    """Made once, to be loaded into: that takes longest."""
    return build("tinynet", classes=3, image_size=(8, 8), seed=0)


def read_weights(folder: Path) -> None:
    model = _model()
    load_weights(folder / "model.safetensors", model)
    _finite(model)


def read_start(folder: Path) -> None:
    config = RunConfig.from_mapping({**RUN, "init": str(folder / "model.safetensors"), "model": "tinynet"})
    start = load_starting_weights(config, _model())
    start.load_into(_model())
    _ = start.normalization


def make_interrupted(folder: Path) -> None:
    """A run of two steps that was interrupted after the first."""
    original = dign.training.loop.TrainingLoop._step

    def step_and_interrupt(training: dign.training.loop.TrainingLoop, step: int) -> None:
        original(training, step)
        os.kill(os.getpid(), signal.SIGINT)

    config = {**RUN, "epochs": 2, "keep": "best", "validate_every": 1}
    stopping = patch.object(dign.training.loop.TrainingLoop, "_step", step_and_interrupt)
    with _little_data(), stopping, suppress(Interrupted):
        train(RunConfig.from_mapping(config), folder / "run", quiet=True)
    _lift(folder / "run")
    assert {"checkpoint.safetensors", "best.safetensors", "best.json"} <= {file.name for file in folder.iterdir()}


def read_interrupted(folder: Path) -> None:
    with _little_data():
        assert resume(folder, quiet=True).finished
        _finite(load_run(folder).model())


def _little_data() -> Any:
    """Twenty images in place of the digits."""
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    data = from_arrays("digits", images, [0, 1] * 10, ["a", "b"])
    return patch("dign.data.load", lambda *names, **settings: data)


def _lift(folder: Path) -> None:
    """Move the files of a folder into the one above."""
    for file in folder.iterdir():
        file.rename(folder.parent / file.name)
    folder.rmdir()


def _finite(model: torch.nn.Module) -> None:
    assert all(bool(value.isfinite().all()) for value in model.state_dict().values())


def make_metrics(folder: Path) -> None:
    lines = [{"step": 20 * n, "epoch": n, "loss": 1 / (n + 1), "terms": {"cross_entropy": 0.1}} for n in range(5)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def read_metrics(folder: Path) -> None:
    kept = folder / "kept.jsonl"
    shutil.copy(folder / "metrics.jsonl", kept)
    _drop_records_after(kept, 40)
    assert all(json.loads(line)["step"] <= 40 for line in kept.read_text().splitlines())
    kept.unlink()


def make_tracking(folder: Path) -> None:
    (folder / "tracking.json").write_text('{"wandb": "0123456789ab"}')


def read_tracking(folder: Path) -> None:
    assert isinstance(get_or_create_id(folder, "wandb", lambda: "new"), str)


def read_report(folder: Path) -> None:
    text = report_text(study_of([folder]), "html")
    assert "<script>alert" not in text


def make_report(folder: Path) -> None:
    make_run(folder)
    for name in ("model.safetensors", ".lock"):
        (folder / name).unlink()
    example = {"index": 0, "corruption": "clean", "severity": 0, "label": "a", "prediction": "b", "confidence": 50.0}
    example["png"] = base64.b64encode(picture("PNG", (8, 8), 0)).decode()
    (folder / "examples.json").write_text(json.dumps({"images": [example]}))


def make_hub(folder: Path) -> None:
    save_weights(folder / "model.safetensors", _model())
    config = {
        "model": "tinynet", "classes": ["a", "b", "c"], "image_size": [8, 8], "mean": [0.5] * 3, "std": [0.2] * 3,
        "data": "digits", "method": "dign", "settings": {"dign": {"sigma_max": 0.1}},
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))


def read_hub(folder: Path) -> None:
    classifier = load_model(folder)
    assert all(isinstance(name, str) for name in classifier.classes)


CONFIG = """
data = "digits"
method = "dign+augmix"
model = "tinynet"
epochs = 3
lr = 0.1
flip = true
schedule = "one-cycle"

[settings.dign]
sigma_max = 0.2
samples = 3

[settings.augmix]
weight = 6
"""

GRID = """
data = ["digits", "cifar10"]
method = ["standard", "dign"]
seed = [0, 1]
epochs = 2
threads = 1

[settings.dign]
sigma_max = [0.1, 0.2]

[for.cifar10]
lr = 0.05

[evaluate]
only = ["noise", "fog"]
severity = "1-3"
"""


def make_text(name: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(text) and None


def read_config(folder: Path) -> None:
    config = RunConfig.from_mapping(read_toml(folder / "run.toml"))
    make_method(config.method, config.settings, data=config.data, label_smoothing=config.label_smoothing)
    assert RunConfig.from_mapping(tomllib.loads(config.to_toml())) == config


def make_grid_folder(folder: Path) -> None:
    (folder / "grid.toml").write_text(GRID)
    run = read_plan(folder / "grid.toml").runs[0]
    place = folder / run.name
    place.mkdir()
    (place / "config.toml").write_text(run.config.to_toml())
    (place / "model.safetensors").write_text("")
    (place / "results.json").write_text(json.dumps(results()))


def read_grid_folder(folder: Path) -> None:
    plan = read_plan(folder / "grid.toml")
    read_state(LocalStore(folder), plan.runs[0])


def read_severities(folder: Path) -> None:
    text = (folder / "words.txt").read_bytes().decode("utf-8", "replace")
    assert set(parse_severities(text)) <= {1, 2, 3, 4, 5}


def read_words(folder: Path) -> None:
    text = (folder / "words.txt").read_bytes().decode("utf-8", "replace")
    assign_options("dign+augmix", parse_words(text.split())[1])


def read_corruptions(folder: Path) -> None:
    choose_corruptions((folder / "words.txt").read_bytes().decode("utf-8", "replace").split(","))


def read_card(folder: Path) -> None:
    read_results(folder)
