"""What two real processes do for tests/parallel/test_team.py: `python team_work.py FOLDER` starts the second.

Everything is in one place because to start processes takes longer than all that they do.
"""

import json
import os
import signal
import sys
from contextlib import redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path

import torch
from double_precision import double_precision
from torch import nn

import dign.training.loop
from dign.core.errors import UserError
from dign.methods import METHODS as KINDS
from dign.methods import Augmentation
from dign.models import MODELS
from dign.parallel.fabric import join_processes
from dign.parallel.team import Team
from dign.runs.config import RunConfig
from dign.training.train import train

SMALL = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 400, "validate_every": 1, "track": "none"}
"""Six steps."""
SUM = "deepaugment+dign+augmix"
MIXED = "+".join([*(key for key, kind in KINDS.items() if issubclass(kind, Augmentation)), "dign"])
METHODS = (*(key for key, kind in KINDS.items() if not issubclass(kind, Augmentation)), SUM, MIXED)
APART = {"settings": {"dign": {"together": False}}}
"""Several passes through the model before there is a gradient."""
SYNCHRONIZED = {"model": "tinynet", "method": "rse", "sync_batch_norm": True}
"""It learns from noisy images: in the digits themselves many pixels are equal, and which of them a max-pool takes, the
last bit decides.
"""
TWICE = {
    "cure": {"weight": 0.3, "step": 0.5},
    "llr": {"weight": 1.0, "slope_weight": 0.5, "steps": 2},
    "gradient-regularization": {},
}
"""Methods whose losses hold derivatives, or compare passes: they are trained through synchronized norms as well."""
COMPILED = {"sum": {"method": SUM, "accumulate": 2}, "norm": SYNCHRONIZED}
LONG = {"epochs": 20, "method": "at", "settings": {"at": {"steps": 1}}, "checkpoint_seconds": 0.1}
"""Batch norm that is not synchronized, and attacks that look at its statistics: all that a restart could lose."""
EVALUATION = ("--only", "shot_noise", "--severity", "1-2", "--split", "train", "--batch-size", "100", "--temperature")


def without_batch_norm(classes: int, image_size: tuple[int, int]) -> nn.Module:
    """Three convolutions, so that methods that reach into the network find a place."""
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.GELU()]
    layers += [nn.Conv2d(8, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 8, 3, padding=1), nn.GELU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 4 * 4, classes))


def with_batch_norm(classes: int, image_size: tuple[int, int]) -> nn.Module:
    layers = [nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.GELU()]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 4 * 4, classes))


OWN = {"plain": without_batch_norm, "normed": with_batch_norm}


def prepare() -> None:
    """Models of our own, and a record of every second step."""
    torch.set_num_threads(1)
    MODELS.update(OWN)
    dign.training.loop.LOG_EVERY = 2


def config(**changes: object) -> RunConfig:
    return RunConfig.from_mapping({**SMALL, "model": "plain", **changes})


def train_all(folder: Path, devices: int) -> None:
    """In float64, where two ways to add up the same numbers differ by far less than any two other ways to train."""
    with double_precision():
        for method in METHODS:
            train(config(method=method, devices=devices), folder / method, quiet=True)
        train(config(method="dign", devices=devices, **APART), folder / "apart", quiet=True)
        train(config(devices=devices, **SYNCHRONIZED), folder / "synchronized", quiet=True)
        for method, settings in TWICE.items():
            changes = {"model": "normed", "method": method, "settings": {method: settings}, "sync_batch_norm": True}
            train(config(devices=devices, **changes), folder / f"synchronized-{method}", quiet=True)


def train_compiled(folder: Path) -> None:
    """The same steps in float32, as they are and traced into one graph, which the backend carries out as it is."""
    original = torch.compile
    torch.compile = partial(original, backend="eager")
    for name, changes in COMPILED.items():
        for compiled in (False, True):
            place = folder / f"{name}-{'compiled' if compiled else 'eager'}"
            train(config(**changes, devices=2, epochs=1, compile=compiled), place, quiet=True)
    torch.compile = original


def command(*words: object) -> tuple[int, str]:
    """Exit code and standard error of a command line."""
    from dign.cli import main

    with redirect_stderr(StringIO()) as said:
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            return int(stop.code or 0), said.getvalue()
    return 0, said.getvalue()


def interrupted(folder: Path, team: Team) -> list[tuple[int, str]]:
    """The second process alone is told to stop; both do, and both go on."""
    original = dign.training.loop.TrainingLoop._step

    def step_then_signal(training: dign.training.loop.TrainingLoop, step: int) -> None:
        original(training, step)
        if step == 2 and team.rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    options = [f"--{key.replace('_', '-')}={value}" for key, value in SMALL.items() if key != "data"]
    words = ["train", "digits", *options, "--model=plain", "--method=dign", "--out", folder / "interrupted"]
    with double_precision():
        dign.training.loop.TrainingLoop._step = step_then_signal
        stopped = command(*words, "--devices=2", "-q")
        dign.training.loop.TrainingLoop._step = original
        return [stopped, command("train", "--resume", folder / "interrupted", "-q")]


def mistakes(folder: Path, team: Team) -> list[str]:
    """What each of several mistakes is in this process."""

    def disk_full(training: dign.training.loop.TrainingLoop) -> None:
        raise OSError(28, "No space left on device")

    original, seen = dign.training.loop.TrainingLoop._finish, []
    for name, changes in (("odd", {"batch_size": 401}), ("diverged", {"lr": 1e9}), ("dign", {}), ("full", {})):
        dign.training.loop.TrainingLoop._finish = disk_full if name == "full" else original
        try:
            train(config(method="standard", devices=2, **changes), folder / name, quiet=True)
        except (UserError, OSError) as error:
            seen.append(f"{type(error).__name__}: {error}")
    dign.training.loop.TrainingLoop._finish = original
    return seen


def main(folder: Path) -> None:
    prepare()
    team = join_processes("auto", 2, 1)
    train_all(folder, devices=2)
    train_compiled(folder)
    train(config(**{**LONG, "model": "tinynet", "devices": 2}), folder / "undisturbed", quiet=True)
    told = {
        "count": team.world_size,
        "evaluated": command("evaluate", folder / "rse", *EVALUATION, "--devices", 2),
        "interrupted": interrupted(folder, team),
        "mistakes": mistakes(folder, team),
    }
    (folder / f"process-{team.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
