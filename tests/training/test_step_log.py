"""Steps that are not logged yet survive in a checkpoint."""

import pytest
import torch

from dign.training.step_log import Step, stack, unstack


def make_steps():
    return [Step(n, torch.tensor(n / 2), {"a": torch.tensor(n * 1.0), "b": torch.tensor(-n * 1.0)}) for n in (3, 4, 5)]


def test_steps_come_back_as_they_were():
    tensors = stack(make_steps())
    assert tensors["number"].tolist() == [3, 4, 5] and tensors["terms/b"].tolist() == [-3, -4, -5]
    assert unstack(tensors) == make_steps()
    assert stack([]) == {} and unstack({}) == []


@pytest.mark.parametrize("name", ["number", "loss", "terms/a"])
def test_incomplete_tensors_are_refused(name):
    tensors = stack(make_steps())
    with pytest.raises(ValueError, match="incomplete"):
        unstack({**tensors, name: tensors[name][:2]})
