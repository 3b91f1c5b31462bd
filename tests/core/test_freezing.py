"""A frozen model is in eval mode without gradients, and afterwards it is as it was."""

import pytest
import torch
from torch import nn

from dign.core.freezing import freeze_temporarily, still_temporarily


def test_everything_comes_back_also_after_an_error() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.BatchNorm1d(2), nn.Dropout()))
    model[1].eval()
    model[0].bias.requires_grad_(False)
    with pytest.raises(RuntimeError, match="inside"), freeze_temporarily(model):
        assert not any(module.training for module in model.modules())
        assert not any(parameter.requires_grad for parameter in model.parameters())
        raise RuntimeError("inside")
    assert [module.training for module in model.modules()] == [True, True, False, False, False]
    assert model[0].weight.requires_grad and not model[0].bias.requires_grad


def test_the_gradient_reaches_the_input_alone() -> None:
    model = nn.Linear(2, 1)
    x = torch.ones(1, 2, requires_grad=True)
    with freeze_temporarily(model):
        model(x).sum().backward()
    assert torch.equal(x.grad, model.weight) and model.weight.grad is None


def test_a_model_that_is_still_takes_the_statistics_of_the_batch_and_records_none():
    norm, drop = nn.BatchNorm1d(2), nn.Dropout(0.5)
    frozen = nn.BatchNorm1d(2).eval()
    model = nn.Sequential(norm, drop, nn.Sequential(frozen))
    model[2].training = True
    x = torch.randn(8, 2)
    expected = nn.functional.batch_norm(x, None, None, norm.weight, norm.bias, training=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with still_temporarily(model):
        torch.testing.assert_close(model(x), frozen(expected))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert (norm.training, drop.training, frozen.training, norm.track_running_stats) == (True, True, False, True)


def test_parameters_alone_can_be_frozen():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    with freeze_temporarily(model, keep_mode=True):
        assert model[1].training and not any(parameter.requires_grad for parameter in model.parameters())
    assert all(parameter.requires_grad for parameter in model.parameters())
