"""Models for the playground: one whose answers are worked out by hand, and two small runs."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dign.app.answers import Player
from dign.cli import main
from dign.methods import Standard
from dign.runs.classifier import Classifier


class Brightness(nn.Module):
    """Logits (0, 100 (mean - 1/2)): class 1 where the image is bright."""

    def forward(self, x):
        bright = 100 * (x.mean(dim=(1, 2, 3)) - 0.5)
        return torch.stack([torch.zeros_like(bright), bright], dim=1)


@pytest.fixture
def make_player():
    """The function that makes a player of `Brightness`."""
    return _make_player


def _make_player(size=(16, 16), classes=("dark", "bright"), slot=0):
    classifier = Classifier(Brightness().eval(), Standard(), list(classes), size, name="test")
    return Player(
        "test", "Standard", slot, classifier, torch.device("cpu"), None, "There is nothing: `dign evaluate x`."
    )


@pytest.fixture
def gray(tmp_path):
    """An image of one gray, 130 of 255."""
    path = tmp_path / "gray.png"
    Image.fromarray(np.full((40, 30, 3), 130, dtype=np.uint8)).save(path)
    return path


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A run that was evaluated under one condition, and one that was not."""
    folder = tmp_path_factory.mktemp("runs")
    small = ["--model", "tinynet", "--size", "8", "--epochs", "2", "--batch-size", "256", "-q"]
    for args in (
        ["train", "digits", "--method", "standard", *small, "--out", str(folder / "measured")],
        ["train", "digits", "--method", "rse", *small, "--out", str(folder / "plain")],
        ["evaluate", str(folder / "measured"), "--only", "gaussian_noise", "--severity", "3", "-q"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(args)
        assert stop.value.code == 0
    return [folder / "measured", folder / "plain"]
