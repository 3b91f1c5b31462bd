import os
import signal

import pytest
import torch

import dign.training.loop
from dign.grid.job import Job, run_job
from dign.grid.plan import make_plan

SMALL = {
    "data": "digits",
    "size": 8,
    "method": "standard",
    "epochs": 2,
    "batch_size": 128,
    "checkpoint_seconds": 0,
    "evaluate": {"only": "shot_noise", "severity": 3},
}
"""Twenty steps and two conditions: a second of work."""


@pytest.fixture(autouse=True)
def same_threads():
    """Jobs set the number of threads for good; give it back to the other tests."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def small():
    """A function that plans small runs with some settings changed."""
    return lambda **changes: make_plan({**SMALL, **changes})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, small):
    """A plan of one run, the folder it was carried out in, and its outcome."""
    out = tmp_path_factory.mktemp("grid")
    plan = small()
    return plan, out, run_job(Job.of(plan.runs[0], out, threads=1))


@pytest.fixture
def interrupt_at_step(monkeypatch):
    """Send the process SIGTERM after some step of training, as an engine does that is stopped."""
    original = dign.training.loop.TrainingLoop._step

    def at(number):
        def step(self, done):
            original(self, done)
            if done + 1 == number:
                os.kill(os.getpid(), signal.SIGTERM)

        monkeypatch.setattr(dign.training.loop.TrainingLoop, "_step", step)
        return monkeypatch

    return at
