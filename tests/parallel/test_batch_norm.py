"""Batch norms are replaced by synchronized ones in place."""

import pytest
from torch import distributed, nn

from dign.core.errors import UserError
from dign.parallel.batch_norm import RunningStatistics, SynchronizedBatchNorm, synchronize_batch_norm
from dign.parallel.team import Team


def test_synchronizing_keeps_parameters_names_and_modes():
    norm = nn.BatchNorm2d(3, momentum=0.3, eps=1e-3).eval()
    norm.weight.requires_grad = False
    model = nn.Sequential(nn.Conv2d(3, 3, 1), nn.Sequential(norm, nn.ReLU()))
    names = list(model.state_dict())
    made = synchronize_batch_norm(model, Team(world_size=2))[1][0]
    assert isinstance(made, SynchronizedBatchNorm) and list(model.state_dict()) == names
    assert made.weight is norm.weight and made.running_var is norm.running_var and not made.training
    assert (made.momentum, made.eps) == (0.3, 1e-3)
    assert synchronize_batch_norm(nn.Sequential(norm), Team())[0] is norm, "alone there is nothing to synchronize"


def test_a_batch_norm_of_its_own_kind_cannot_be_synchronized():
    class Own(nn.BatchNorm2d):
        pass

    with pytest.raises(UserError, match="not this model's Own"):
        synchronize_batch_norm(nn.Sequential(Own(3)), Team(world_size=2))


def test_running_statistics_are_averaged_over_the_processes(monkeypatch):
    """The other process has ones where this one has threes and fives."""

    def all_reduce(flat):
        flat.add_(1)

    monkeypatch.setattr(distributed, "all_reduce", all_reduce)
    norm = nn.BatchNorm2d(2)
    norm.running_mean.fill_(3)
    norm.running_var.fill_(5)
    RunningStatistics(nn.Sequential(norm, nn.ReLU()), Team(world_size=2)).average()
    assert norm.running_mean.tolist() == [2, 2] and norm.running_var.tolist() == [3, 3]
    RunningStatistics(nn.Sequential(norm), Team()).average()
    assert norm.running_mean.tolist() == [2, 2], "alone nothing is averaged"
