"""Ninety random images, a linear model, a run that predicts with noise, and results worked out by hand."""

import pytest
import torch
from torch import nn

from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions, choose_corruptions
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_pools import TemperatureResult
from dign.evaluation.summarize import CLEAN, make_results, pool_calibration
from dign.metrics import Calibration, Confusion
from dign.runs.config import RunConfig
from dign.training.train import train


@pytest.fixture(scope="session")
def noise():
    """The four noises at the lowest and the highest severity."""
    return Conditions(corruptions=choose_corruptions(["noise"]), severities=(1, 5), profile="imagenet", jpeg=None)


@pytest.fixture(scope="session")
def split():
    generator = torch.Generator().manual_seed(0)
    return Split(
        torch.randint(256, (90, 3, 8, 8), dtype=torch.uint8, generator=generator),
        torch.randint(4, (90,), generator=generator),
    )


@pytest.fixture(scope="session")
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 4))


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "method": "rse", "batch_size": 256})
    return train(config, tmp_path_factory.mktemp("evaluate") / "run", quiet=True)


def count(right, total=10):
    """Predictions at a confidence of 0.75."""
    return Calibration.from_state(
        {"counts": [0, total], "correct": [0, right], "deviation": [0.0, 0.0], "square": [0.0, 0.0]}
    )


@pytest.fixture
def results():
    """Ten predictions under each condition: 9 right on clean images, 1, 6 and 7 under three corruptions."""
    counts = {CLEAN: count(9), ("gaussian_noise", 1): count(1), ("shot_noise", 1): count(6), ("fog", 3): count(7)}
    run = RunInfo("run", "dign", "DiGN", "tinynet", "digits", 3, 100)
    how = EvaluationInfo("test", 10, (8, 8), "cifar", 0, bins=2, device="cpu", versions={"dign": "0.1.0"})
    scaled = TemperatureResult(1.5, pool_calibration(counts), "validation", 5, {"before": 1.0, "after": 0.5})
    confusions = {
        CLEAN: Confusion.from_state({"counts": [[4, 1], [0, 5]]}),
        ("shot_noise", 1): Confusion.from_state({"counts": [[3, 2], [2, 3]]}),
        ("gaussian_noise", 1): Confusion.from_state({"counts": [[0, 5], [4, 1]]}),
    }
    return make_results(counts, run, how, ["a", "b"], scaled, confusions)
