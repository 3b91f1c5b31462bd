"""The average of the weights: its formula, and that the model gets its own weights back."""

import pytest
import torch
from torch import nn

from dign.training.averaging import WeightAverage


@pytest.fixture
def model():
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))


def set_all(model, value):
    for tensor in model.state_dict().values():
        tensor.fill_(value)


def test_the_average_follows_its_formula_and_starts_with_a_smaller_decay(model):
    set_all(model, 0)
    average, expected = WeightAverage(model, 0.9), 0.0
    for step in range(200):
        set_all(model, step)
        average.update(step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    assert all(
        tensor.flatten().tolist() == pytest.approx([expected] * tensor.numel()) for tensor in average.tensors.values()
    )
    assert {"0.weight", "1.running_mean"} <= average.tensors.keys() and "1.num_batches_tracked" not in average.tensors


def test_the_model_has_the_average_in_the_block_and_its_own_weights_after_it(model):
    set_all(model, 1)
    average = WeightAverage(model, 0.5)
    set_all(model, 3)
    with pytest.raises(RuntimeError), average.applied():
        assert model[0].weight.unique().tolist() == [1]
        raise RuntimeError
    assert model[0].weight.unique().tolist() == model[1].running_var.unique().tolist() == [3]
    assert average.tensors["0.weight"].unique().tolist() == [1]


def test_an_average_of_another_model_is_refused_and_one_of_this_model_is_taken(model):
    average = WeightAverage(model, 0.5)
    saved = {name: torch.full_like(tensor, 2.0) for name, tensor in average.tensors.items()}
    average.restore(saved)
    assert average.tensors["0.bias"].tolist() == [2, 2]
    with pytest.raises(ValueError, match=r"'0\.weight'"):
        average.restore({"0.bias": torch.zeros(2)})
