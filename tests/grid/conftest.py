import pytest
import torch

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
