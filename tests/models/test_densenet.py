"""DenseNet-121 has the depth in its name, and passes its input on."""

import torch
from torch import nn

from dign.models.densenet import DenseLayer, DenseNet121, Transition


def test_there_are_121_layers_with_weights():
    with torch.device("meta"):
        model = DenseNet121(10, (32, 32))
    assert sum(isinstance(module, nn.Conv2d | nn.Linear) for module in model.modules()) == 121


def test_a_layer_appends_new_channels_and_a_transition_halves_the_sides():
    x = torch.rand(2, 24, 8, 8)
    y = DenseLayer(24, 12)(x)
    assert y.shape == (2, 36, 8, 8) and torch.equal(y[:, 12:], x)
    assert Transition(24, 12)(x).shape == (2, 12, 4, 4)
