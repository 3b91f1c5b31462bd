"""Hooks that are there during a step, and leave nothing behind."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.methods.reach import Pass, Reach, check_rows, edit_rows, find_layers


def test_edits_work_while_something_passes_and_are_gone_afterwards():
    layer = nn.Linear(2, 2)
    reach = Reach([(layer, lambda features, passing: torch.zeros_like(features))])
    x = torch.ones(4, 2)
    plain = layer(x)
    with reach.attach():
        assert torch.equal(layer(x), plain), "an attack's pass, for example"
        reach.current = Pass(4, ("",))
        assert torch.equal(layer(x), layer.bias.expand(4, 2))
    assert torch.equal(layer(x), plain) and not layer._forward_pre_hooks


def test_nothing_is_left_when_a_step_fails():
    layer = nn.Linear(2, 2)
    with pytest.raises(ZeroDivisionError), Reach([(layer, lambda features, passing: features)]).attach():
        raise ZeroDivisionError
    assert not layer._forward_pre_hooks


def test_the_rows_of_one_method_alone_are_edited():
    features = torch.zeros(6, 3)
    edited = edit_rows(features, Pass(2, ("", "dign", "mine")), "mine", lambda rows: rows + 1)
    assert edited[:, 0].tolist() == [0, 0, 0, 0, 1, 1] and torch.equal(features, torch.zeros(6, 3))


def test_layers_are_found_by_their_names_also_inside_wrappers():
    network = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    wrapped = nn.ModuleDict({"module": network})
    assert find_layers(network, ["1.0"]) == find_layers(wrapped, ["1.0"]) == [network[1][0]]
    with pytest.raises(UserError, match="the model has no layer 'conv9': expected a name such as"):
        find_layers(network, ["conv9"])


def test_features_without_the_images_on_the_first_axis_are_refused():
    with pytest.raises(UserError, match=r"is given \(3, 2\) where 4 images pass"):
        check_rows(torch.zeros(3, 2), Pass(2, ("", "mine")))
