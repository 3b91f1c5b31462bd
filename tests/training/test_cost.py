"""The work of a training, in Standard trainings and in time."""

import pytest
import torch
from torch import nn

from dign.grid.plan import make_plan
from dign.models import build
from dign.runs.config import RunConfig
from dign.training.cost import (
    FLOPS_PER_THREAD,
    MEASURED_IMAGES,
    TRAINING_PER_FORWARD,
    describe_duration,
    estimate_cpu_seconds,
    measure_cpu_seconds,
    standard_equivalents,
)


def test_cost_is_counted_in_standard_trainings():
    plan = make_plan({"data": "cifar10", "method": ["standard", "rse", "dign", "dign+augmix"]})
    assert [standard_equivalents(run.config) for run in plan.runs] == [1, 1, 4, 6]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (99, "99 s"), (600, "10 min"), (7200, "2.0 h"), (40 * 3600, "40 h"), (5 * 86400, "5.0 days")],
)
def test_times_are_written_for_people(seconds, text):
    assert describe_duration(seconds) == text


def test_operations_are_counted_on_a_model_without_numbers():
    """A linear layer of 12 x 5: 2 x 60 operations forward, three times that a step, 100 images, 2 epochs."""
    with torch.device("meta"):
        model = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    config = RunConfig(data="cifar10", method="standard", epochs=2)
    seconds = estimate_cpu_seconds(config, model, (2, 2), images=100)
    assert seconds == pytest.approx(3 * 120 * 100 * 2 / (FLOPS_PER_THREAD * torch.get_num_threads()))
    config = RunConfig(data="cifar10", method="dign", epochs=2)  # four passes
    assert estimate_cpu_seconds(config, model, (2, 2), images=100) == pytest.approx(4 * seconds)
    config = RunConfig(data="cifar10", method="standard", epochs=2, devices=2)  # two processes
    assert estimate_cpu_seconds(config, model, (2, 2), images=100) == pytest.approx(seconds / 2)


def test_the_published_recipe_takes_days_on_a_core_and_the_fast_preset_minutes():
    def days(**settings):
        config = RunConfig.from_mapping({"data": "cifar10", "method": "dign", **settings})
        with torch.device("meta"):
            model = build(config.model, classes=10, image_size=(32, 32))
        seconds = estimate_cpu_seconds(config, model, (32, 32), images=45_000)
        return seconds * torch.get_num_threads() / 86400

    assert 5 < days() < 60
    assert days(preset="fast") < 0.05


def test_a_long_training_is_measured_by_predictions(monkeypatch):
    """Three predictions of eight images, of which the fastest takes 2 s; 100 images, 3 epochs, two processes."""
    times = iter([0.0, 9.0, 10.0, 12.0, 20.0, 23.0])
    monkeypatch.setattr("dign.training.cost.time.perf_counter", lambda: next(times))
    model = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    config = RunConfig(data="cifar10", method="standard", epochs=3, devices=2)
    seconds = measure_cpu_seconds(config, model, (2, 2), images=100)
    assert seconds == pytest.approx(TRAINING_PER_FORWARD * 2 / MEASURED_IMAGES * 100 * 3 / 2)


def test_a_model_that_cannot_be_counted_has_no_estimate():
    class Broken(nn.Module):
        def forward(self, x):
            raise NotImplementedError

    assert estimate_cpu_seconds(RunConfig(data="cifar10"), Broken(), (2, 2), images=1) is None
