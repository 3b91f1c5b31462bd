"""Tensors of a file under a model's names."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.models import Normalize
from dign.runs.weight_matching import check_match, find_head, head_tensors, match_names


def network(classes=3):
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4, classes))


@pytest.fixture
def model():
    return nn.Sequential(Normalize([0.5] * 3, [0.5] * 3), network())


def rename(tensors, names=("first", "norm", "last")):
    """The same tensors as another library calls them."""
    words = dict(zip(("0", "1", "3"), names, strict=True))
    return {f"{words[name.partition('.')[0]]}.{name.partition('.')[2]}": value for name, value in tensors.items()}


def matched(model, found):
    return match_names(found, model.state_dict(), head_tensors(model))


def test_the_head_is_the_last_linear_layer(model):
    assert find_head(model) == ["1.3"] and head_tensors(model) == {"1.3.weight", "1.3.bias"}


def test_a_bare_network_is_matched_by_name(model):
    found = network().state_dict()
    assert matched(model, found).keys() == model.state_dict().keys() - {"0.mean", "0.std"}
    assert matched(model, model.state_dict()).keys() == model.state_dict().keys()


@pytest.mark.parametrize("classes", [3, 10])
def test_other_names_are_matched_by_order_kind_and_shape(model, classes):
    source = network(classes).state_dict()
    found = matched(model, rename(source))
    assert all(torch.equal(found[f"1.{name}"], source[name]) for name in source if not name.endswith("tracked"))


def test_order_alone_does_not_match(model):
    """Another shape, another kind at the same place, or another number of tensors: nothing is taken over."""
    source = rename(network().state_dict())
    other_shape = {**source, "first.weight": torch.zeros(4, 3, 5, 5)}
    swapped = {name: source[name] for name in (*list(source)[:2], "norm.bias", "norm.weight", *list(source)[4:])}
    fewer = {name: tensor for name, tensor in source.items() if name != "first.bias"}
    for found in (other_shape, swapped, fewer):
        assert not matched(model, found).keys() & model.state_dict().keys()


def test_what_does_not_fit_is_listed(model):
    wanted = model.state_dict()
    found = {**wanted, "1.0.weight": torch.zeros(4, 3, 5, 5), "1.9.weight": torch.zeros(1)}
    del found["1.1.weight"], found["1.1.num_batches_tracked"]
    with pytest.raises(UserError) as error:
        check_match("x.pth", found, wanted, set())
    assert str(error.value) == (
        "x.pth does not fit the model: it lacks '1.1.weight'; it has '1.9.weight', which the model lacks; other "
        "shapes: 1.0.weight (4, 3, 5, 5) instead of (4, 3, 3, 3) (1 tensors missing, 1 too many, 1 of another "
        "shape, of 11); choose the `model` that it was made for."
    )


def test_weights_must_be_finite(model):
    found = model.state_dict()
    found["1.0.bias"] = torch.tensor([1.0, float("nan"), 1.0, 1.0])
    with pytest.raises(UserError, match=r"x.pth is damaged: '1.0.bias' holds values that are not finite"):
        check_match("x.pth", found, model.state_dict(), set())
