"""Notes and errors of a training that is not well."""

import math

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.runs.config import RunConfig
from dign.runs.folder import Run
from dign.training.health import (
    Diverged,
    check_finite,
    explain_out_of_memory,
    note_chance_level,
    note_divergence,
    note_move,
    note_waiting,
)
from dign.training.step_log import Step


@pytest.fixture
def run(tmp_path):
    return Run(tmp_path, RunConfig(data="digits", lr=0.5), {"machine": {"device": "a large GPU"}})


def test_the_first_loss_or_weight_that_is_not_finite_is_named(run):
    model = nn.Linear(2, 2)
    steps = [Step(4, torch.tensor(1.0), {}), Step(5, torch.tensor(math.nan), {"cross_entropy": torch.tensor(math.inf)})]
    check_finite(steps[:1], model, run)
    check_finite([], model, run)
    with pytest.raises(Diverged, match=r"at step 5 \(cross_entropy inf\); no checkpoint .* smaller `lr` than 0.5"):
        check_finite(steps, model, run)
    model.weight.data[0, 0] = math.nan
    run.checkpoint.touch()
    with pytest.raises(Diverged, match="a statistic of a batch norm is not finite after step 4; the last good"):
        check_finite(steps[:1], model, run)
    # A batch norm keeps the loss finite though its statistics overflow: such a model cannot be opened again.
    norm = nn.BatchNorm1d(2)
    check_finite(steps[:1], norm, run)
    norm.running_var[0] = math.inf
    with pytest.raises(Diverged, match="a statistic of a batch norm is not finite"):
        check_finite(steps[:1], norm, run)


def test_losses_are_compared_with_guessing():
    assert note_divergence({"clean/cross_entropy": 2.0, "consistency": 99.0}, 40, 10, 0.1) == []
    (note,) = note_divergence({"clean/cross_entropy": 5.0}, 40, 10, 0.1)
    assert "The loss is 5.0 after 40 steps" in note and "(2.30" not in note and "2.30" in note
    assert note_chance_level([2.5, 2.2], 10, 0.1) == note_chance_level([None], 10, 0.1) == []
    (note,) = note_chance_level([2.5, 2.31], 10, 0.1)
    assert "ended at 2.50" in note and "smaller `lr` than 0.1" in note


def test_waiting_for_pictures_is_told_from_a_twentieth_on(run):
    assert note_waiting(4.0, 100.0, run.config) == note_waiting(0.5, 1.0, run.config) == []
    (note,) = note_waiting(30.0, 100.0, run.config)
    assert "30 % of the time" in note


def test_another_device_is_told(run):
    (note,) = note_move(run, run.config, torch.device("cpu"))
    assert "started with device a large GPU and is resumed with" in note


def test_a_smaller_batch_is_suggested_and_other_errors_pass(run):
    with (
        pytest.raises(UserError, match=r"`batch_size=32`, or keep the batch and let it pass in 2 parts"),
        explain_out_of_memory(run, 64, torch.device("cpu")),
    ):
        raise torch.OutOfMemoryError("out of memory")
    with pytest.raises(RuntimeError, match="else"), explain_out_of_memory(run, 64, torch.device("cpu")):
        raise RuntimeError("something else")
