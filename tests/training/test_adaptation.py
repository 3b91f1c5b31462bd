"""Methods that adapt themselves: when they probe, what they adapt by, and what a checkpoint keeps of it."""

import os
import signal

import pytest
import torch

from dign.methods import FWAT, DiGN
from dign.parallel.team import SINGLE_PROCESS
from dign.training.adaptation import Adaptation
from dign.training.interrupts import Interrupted
from dign.training.loop import TrainingLoop
from dign.training.train import resume, train

CPU = torch.device("cpu")


def measured(value):
    return {"distortion": torch.tensor(value)}


def test_each_epoch_begins_with_a_probe_and_goes_on_adapted():
    adaptation = Adaptation(FWAT(steps=1, min_distortion=0.9), batch_size=400, steps_per_epoch=5)
    taken = []
    for step in range(10):
        taken.append(adaptation.method_at(step).steps)
        adaptation.record(step, measured(0.5 if step < 5 else 0.95), SINGLE_PROCESS)
    assert taken == [2, 2, 2, 2, 2, 2, 2, 2, 1, 1], "three steps see 1200 images; then 1 + 1 steps, then 2 // 2"


def test_an_epoch_shorter_than_the_probe_is_a_probe():
    adaptation = Adaptation(FWAT(steps=5, min_distortion=0.9), batch_size=10, steps_per_epoch=3)
    for step in range(3):
        assert adaptation.method_at(step).steps == 2
        adaptation.record(step, measured(0.5), SINGLE_PROCESS)
    assert adaptation.method.steps == 6


def test_a_restored_state_goes_on_as_if_nothing_had_happened():
    method = DiGN() + FWAT(steps=4, min_distortion=0.9)
    one = Adaptation(method, 400, 5)
    for step, value in enumerate((0.1, 0.95, 0.99, 0, 0, 0.97)):
        one.record(step, measured(value), SINGLE_PROCESS)
    other = Adaptation(method, 400, 5)
    other.restore({key: str(value) for key, value in one.state().items()}, CPU)
    assert other.method == one.method and other.method.parts[1].steps == 5
    for each in (one, other):
        for step in (6, 7):
            each.record(step, measured(0.95), SINGLE_PROCESS)
    assert one.method == other.method and one.method.parts[1].steps == 2


def test_other_methods_have_no_state():
    adaptation = Adaptation(DiGN(), 400, 5)
    assert not adaptation.adapts and adaptation.state() == {} and adaptation.method_at(0) == DiGN()
    adaptation.restore({}, CPU)


@pytest.mark.slow
def test_a_resumed_run_takes_the_steps_that_an_uninterrupted_one_takes(tmp_path, monkeypatch):
    settings = {"fwat": {"steps": 1, "min_distortion": 0.99}}
    config = {"data": "digits", "size": 8, "epochs": 3, "batch_size": 250, "method": "fwat", "settings": settings}
    taken = []
    original = FWAT.views

    def views(self, *args):
        taken.append(self.steps)
        return original(self, *args)

    monkeypatch.setattr(FWAT, "views", views)
    whole = train(config, tmp_path / "whole", quiet=True)
    expected, taken[:] = list(taken), []
    step = TrainingLoop._step

    def step_then_stop(training, number):
        step(training, number)
        if number == 6:  # in the middle of the second probe
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(TrainingLoop, "_step", step_then_stop)
    with pytest.raises(Interrupted):
        train(config, tmp_path / "parts", quiet=True)
    monkeypatch.setattr(TrainingLoop, "_step", step)
    parts = resume(tmp_path / "parts", quiet=True)
    assert taken == expected and len(set(expected)) > 1
    for ours, theirs in zip(whole.model().parameters(), parts.model().parameters(), strict=True):
        assert torch.equal(ours, theirs)
