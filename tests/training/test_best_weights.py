"""The best weights are kept, and only those."""

import json

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.training.best_weights import BestWeights


def linear(value):
    model = nn.Linear(1, 1)
    nn.init.constant_(model.weight, value)
    return model


def test_only_a_better_validation_replaces_the_weights(tmp_path):
    best = BestWeights(tmp_path, "accuracy")
    model = linear(0.0)
    assert not best.load(model)
    for value, accuracy in ((1.0, 50.0), (2.0, 80.0), (3.0, 80.0), (4.0, 70.0)):
        best.offer(linear(value), {"accuracy": accuracy, "loss": 1.0}, step=int(value))
    assert best.load(model) and torch.equal(model.weight, linear(2.0).weight)
    assert json.loads((tmp_path / "best.json").read_text()) == {"step": 2, "accuracy": 80.0, "loss": 1.0}


def test_a_damaged_file_is_named(tmp_path):
    (tmp_path / "best.json").write_text('{"accuracy": 400}')
    with pytest.raises(UserError, match=r"best\.json is damaged: remove it"):
        BestWeights(tmp_path, "accuracy").offer(linear(1.0), {"accuracy": 50.0})
