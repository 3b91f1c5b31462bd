"""Winograd's convolutions compute what direct ones do."""

import os
import signal
from copy import deepcopy
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

import dign.models.winograd
import dign.training.interrupts
import dign.training.loop
from dign.evaluation.conditions import Conditions
from dign.evaluation.subjects import evaluate_run
from dign.models.fastnet import wide_fastnet
from dign.models.winograd import WinogradConv2d, convolve, use_winograd
from dign.runs.config import RunConfig
from dign.training.train import resume, train


def agree(ours, theirs, within=3e-5):
    torch.testing.assert_close(ours, theirs, rtol=0, atol=within * float(theirs.detach().abs().max()))


@pytest.mark.parametrize(
    ("images", "inputs", "outputs", "height", "width"),
    [(3, 48, 64, 8, 8), (1, 50, 49, 4, 16), (2, 5, 3, 7, 10), (5, 3, 2, 1, 3), (40, 4, 4, 31, 31)],
)
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize("at_once", [None, 1, 800])  # in one part, one by one, and 40 images three by three
def test_outcome_and_gradients_are_those_of_a_direct_convolution(
    images, inputs, outputs, height, width, layout, at_once, monkeypatch
):
    monkeypatch.setattr(dign.models.winograd, "TILES_PER_CHANNEL", 10**6)
    if at_once is not None:
        monkeypatch.setattr(dign.models.winograd, "AT_ONCE", at_once)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
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


@pytest.mark.parametrize(("channels", "images"), [(64, 32), (128, 64), (256, 117)])
@pytest.mark.parametrize("threads", [1, 2])
def test_parts_grow_with_the_channels_until_they_fill_the_caches(channels, images, threads, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    x, weight = torch.empty(500, channels, 8, 8, device="meta"), torch.empty(16, channels, 3, 3, device="meta")
    parts = dign.models.winograd._parts(x, weight)
    assert parts[0] == slice(0, threads * images)
    assert [i for part in parts for i in range(500)[part]] == list(range(500))


def test_only_the_gradients_that_are_wanted_are_made(monkeypatch):
    x, weight = torch.randn(2, 4, 8, 8).requires_grad_(), torch.randn(4, 4, 3, 3)
    monkeypatch.setattr(
        dign.models.winograd, "_kernels_back", lambda *_: pytest.fail("nobody asked for the kernels' gradient")
    )
    convolve(x, weight).sum().backward()
    assert x.grad is not None
    monkeypatch.undo()
    monkeypatch.setattr(
        dign.models.winograd, "_overlaid", lambda *_: pytest.fail("nobody asked for the images' gradient")
    )
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
    names, parameters = list(model.state_dict()), list(model.parameters())
    assert use_winograd(model) is model
    assert [name for name, layer in model.items() if isinstance(layer, WinogradConv2d)] == ["gains"]
    assert list(model.state_dict()) == names
    assert all(ours is theirs for ours, theirs in zip(model.parameters(), parameters, strict=True)), "for the optimizer"
    x = torch.randn(4, 64, 11, 11)
    agree(model["gains"](x), layers["gains"](x))


def test_a_layer_keeps_its_mode_its_hooks_and_its_two_places_and_no_random_number_is_drawn():
    layer = nn.Conv2d(64, 64, 3, padding=1, bias=False).eval()
    model, seen = nn.Sequential(layer, nn.ReLU(), nn.Sequential(layer)), []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(type(module)))
    before = torch.get_rng_state()
    use_winograd(model)
    assert torch.equal(torch.get_rng_state(), before)
    assert isinstance(model[0], WinogradConv2d) and model[2][0] is model[0] and not model[0].training
    model(torch.rand(4, 64, 8, 8))
    assert seen == [WinogradConv2d, WinogradConv2d] and type(layer) is nn.Conv2d


@pytest.fixture
def calls(monkeypatch):
    """How often a convolution was made this way."""
    made = []
    monkeypatch.setattr(dign.models.winograd, "convolve", lambda *arguments: made.append(1) or convolve(*arguments))
    return made


@pytest.mark.parametrize("seed", range(4))
def test_a_net_gives_the_same_loss_and_gradients(seed, calls, monkeypatch):
    # Its maxima are means here: where two values are nearly equal, rounding decides which of them gets the gradient.
    monkeypatch.setattr(functional, "max_pool2d", functional.avg_pool2d)
    torch.manual_seed(seed)
    plain = wide_fastnet(classes=10, image_size=(16, 16))
    x, y = torch.rand(32, 3, 16, 16), torch.arange(32) % 10
    ours = deepcopy(plain)
    use_winograd(ours)

    def loss_of(model):
        pixels = model.stages(functional.gelu(model.patch(x)))
        return functional.cross_entropy(model.linear(pixels.mean((2, 3))), y)

    losses = [loss_of(model) for model in (plain, ours)]
    assert len(calls) == 4, "all but the first, which has few channels, and the last, which has 2x2 pixels"
    agree(losses[1], losses[0])
    for loss in losses:
        loss.backward()
    for theirs, mine in zip(plain.parameters(), ours.parameters(), strict=True):
        if theirs.requires_grad:
            agree(mine.grad, theirs.grad, within=1e-4)


def test_second_derivatives_are_those_of_a_direct_convolution():
    torch.manual_seed(0)
    x, weight = torch.randn(2, 3, 8, 8).requires_grad_(), torch.randn(4, 3, 3, 3).requires_grad_()

    def product(convolution):
        out = convolution(x, weight).tanh().sum()
        gradients = torch.autograd.grad(out, (x, weight), create_graph=True)
        return torch.autograd.grad(sum(gradient.square().sum() for gradient in gradients), (x, weight))

    for ours, theirs in zip(product(convolve), product(lambda x, w: functional.conv2d(x, w, padding=1)), strict=True):
        agree(ours, theirs, within=2e-4)


@pytest.mark.parametrize("follow", [lambda out: out.relu_(), lambda out: out.add_(1)])
def test_a_layer_can_be_followed_by_work_in_place(follow):
    torch.manual_seed(0)
    plain = nn.Conv2d(64, 64, 3, padding=1, bias=False)
    ours, x = use_winograd(deepcopy(plain)), torch.randn(16, 64, 8, 8)
    for model in (plain, ours):
        follow(model(x)).square().sum().backward()
    agree(ours.weight.grad, plain.weight.grad)


@pytest.mark.parametrize("shape", [(64, 8, 8), (1, 64, 4, 4), (64, 64, 1, 1), (64, 64, 5, 5), (0, 64, 8, 8)])
def test_where_it_does_not_pay_the_convolution_is_direct(shape, calls):
    layer = use_winograd(nn.Conv2d(64, 64, 3, padding=1))
    assert layer(torch.randn(shape)).shape == shape and not calls
    with pytest.raises(RuntimeError, match="to have 64 channels"):
        layer(torch.randn(8, 32, 16, 16))


def test_the_first_call_may_be_under_another_default_device():
    dign.models.winograd._transforms.cache_clear()
    with torch.device("meta"):
        assert dign.models.winograd._transforms().input.device.type == "cpu"


@pytest.fixture
def always(monkeypatch):
    """Small nets do it too."""
    monkeypatch.setattr(dign.models.winograd, "FEWEST_CHANNELS", 1)
    monkeypatch.setattr(dign.models.winograd, "_pays", lambda x, weight: True)


@pytest.mark.slow
def test_runs_are_trained_resumed_and_evaluated_this_way(tmp_path, calls, always, monkeypatch):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "batch_size": 128, "method": "standard"})
    whole = train(config, tmp_path / "whole", quiet=True)
    assert calls
    original = dign.training.loop.TrainingLoop._step

    def step_then_interrupt(self, step):
        original(self, step)
        if step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(dign.training.loop.TrainingLoop, "_step", step_then_interrupt)
        with pytest.raises(dign.training.interrupts.Interrupted):
            train(config, tmp_path / "parts", quiet=True)
    parts = resume(tmp_path / "parts", quiet=True)
    ours, theirs = load_file(parts.weights), load_file(whole.weights)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    calls.clear()
    conditions = Conditions(corruptions=("fog",), severities=(3,))
    measured = evaluate_run(whole, conditions).mca
    assert calls
    calls.clear()
    direct = replace(whole, config=replace(whole.config, winograd=False))
    assert evaluate_run(direct, conditions).mca == pytest.approx(measured, abs=0.5)
    assert not calls


@pytest.mark.parametrize("way", ["autocast", "float64"])
def test_other_precisions_go_on_as_before(way, monkeypatch):
    layer = use_winograd(nn.Conv2d(64, 64, 3, padding=1))
    monkeypatch.setattr(dign.models.winograd, "convolve", lambda *_: pytest.fail("only for float32"))
    x = torch.randn(32, 64, 4, 4)
    if way == "float64":
        assert layer.double()(x.double()).dtype == torch.float64
    else:
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(x).dtype == torch.bfloat16
