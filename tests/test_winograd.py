"""Winograd's convolutions compute what direct ones do."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional

import dign.winograd
from dign.models import build
from dign.winograd import WinogradConv2d, convolve, use_winograd


def agree(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4 * float(theirs.detach().abs().max()))


@pytest.mark.parametrize(
    ("images", "inputs", "outputs", "height", "width"),
    [(3, 48, 64, 8, 8), (1, 50, 49, 4, 16), (2, 5, 3, 7, 10), (5, 3, 2, 1, 3), (40, 4, 4, 31, 31)],
)
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_outcome_and_gradients_are_those_of_a_direct_convolution(images, inputs, outputs, height, width, layout):
    torch.manual_seed(0)
    x = torch.randn(images, inputs, height, width).contiguous(memory_format=layout).requires_grad_()
    weight = torch.randn(outputs, inputs, 3, 3).requires_grad_()
    above = torch.randn(images, outputs, height, width)
    expected = functional.conv2d(x, weight, padding=1)
    found = convolve(x, weight)
    agree(found, expected)
    for ours, theirs in zip(
        torch.autograd.grad(found, (x, weight), above), torch.autograd.grad(expected, (x, weight), above), strict=True
    ):
        agree(ours, theirs)


def test_only_the_gradients_that_are_wanted_are_made(monkeypatch):
    x, weight = torch.randn(2, 4, 8, 8).requires_grad_(), torch.randn(4, 4, 3, 3)
    monkeypatch.setattr(
        dign.winograd, "_kernels_back", lambda *_: pytest.fail("nobody asked for the kernels' gradient")
    )
    convolve(x, weight).sum().backward()
    assert x.grad is not None
    monkeypatch.undo()
    monkeypatch.setattr(dign.winograd, "_overlaid", lambda *_: pytest.fail("nobody asked for the images' gradient"))
    convolve(x.detach(), weight.requires_grad_()).sum().backward()
    assert weight.grad is not None


def test_layers_that_gain_are_changed_and_the_others_are_not():
    layers = {
        "gains": nn.Conv2d(64, 64, 3, padding=1),
        "few": nn.Conv2d(16, 64, 3, padding=1),
        "strided": nn.Conv2d(64, 64, 3, padding=1, stride=2),
        "small": nn.Conv2d(64, 64, 1),
        "grouped": nn.Conv2d(64, 64, 3, padding=1, groups=2),
        "reflecting": nn.Conv2d(64, 64, 3, padding=1, padding_mode="reflect"),
        "unpadded": nn.Conv2d(64, 64, 3),
        "named": nn.Conv2d(64, 64, 3, padding="same"),
        "spread": nn.Conv2d(64, 64, 3, padding=1, dilation=2),
    }
    model = nn.ModuleDict(layers)
    names = list(model.state_dict())
    use_winograd(model)
    assert [name for name, layer in model.items() if isinstance(layer, WinogradConv2d)] == ["gains"]
    assert list(model.state_dict()) == names
    x = torch.randn(2, 64, 9, 9)
    agree(layers["gains"](x), functional.conv2d(x, layers["gains"].weight, layers["gains"].bias, padding=1))


def test_a_net_gives_the_same_loss_and_gradients():
    torch.manual_seed(0)
    plain = build("wide_fastnet", classes=10, image_size=(16, 16))
    x, y = torch.rand(4, 3, 16, 16), torch.arange(4)
    ours = deepcopy(plain)
    use_winograd(ours)
    assert sum(isinstance(module, WinogradConv2d) for module in ours.modules()) == 5
    losses = [functional.cross_entropy(model(x), y) for model in (plain, ours)]
    agree(losses[1], losses[0])
    for loss in losses:
        loss.backward()
    for theirs, mine in zip(plain.parameters(), ours.parameters(), strict=True):
        if theirs.requires_grad:
            torch.testing.assert_close(mine.grad, theirs.grad, rtol=1e-3, atol=1e-3 * float(theirs.grad.abs().max()))


@pytest.mark.parametrize("way", ["autocast", "float64"])
def test_other_precisions_go_on_as_before(way, monkeypatch):
    layer = nn.Conv2d(64, 64, 3, padding=1)
    use_winograd(layer)
    monkeypatch.setattr(dign.winograd, "convolve", lambda *_: pytest.fail("only for float32"))
    x = torch.randn(1, 64, 4, 4)
    if way == "float64":
        assert layer.double()(x.double()).dtype == torch.float64
    else:
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
