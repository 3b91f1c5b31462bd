"""How many passes through the model a method makes, and what they give."""

from dataclasses import asdict

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.methods import AFA, APR, AT, METHODS, PRIME, AugMax, AugMix, CutMix, DiGN, HybridAugment, MixUp
from dign.methods.passes import forward

COSTLY = [kind() for kind in METHODS.values()] + [
    DiGN() + AugMix(), DiGN(together=False), DiGN() + AugMax(), CutMix() + DiGN(), MixUp() + AT(), DiGN() + PRIME(),
    DiGN() + HybridAugment(), AFA() + APR() + DiGN(),
]  # fmt: skip


class Count(torch.autograd.Function):
    """The identity, counting the images that pass it forward and backward."""

    @staticmethod
    def forward(context, x, anchor, counts):
        context.counts, context.trains = counts, anchor.requires_grad
        counts["forward"] += len(x)
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        context.counts["backward"] += len(gradient)
        # With a graph of its own, a gradient is one with respect to the images, which is then trained through.
        context.counts["input_only"] += 0 if context.trains and not torch.is_grad_enabled() else len(gradient)
        return CountSecondOrder.apply(gradient, context.counts), None, None


class CountSecondOrder(torch.autograd.Function):
    """The identity, counting the images that pass it on the way back through a backward pass."""

    @staticmethod
    def forward(context, gradient, counts):
        context.counts = counts
        return gradient.clone()

    @staticmethod
    def backward(context, gradient):
        context.counts["second_order"] += len(gradient)
        return gradient, None


class Probe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(192, 5)
        self.counts = {"forward": 0, "backward": 0, "input_only": 0, "second_order": 0}

    def forward(self, x):
        # The last layer is counted: every pass, whether for parameters or for the input, goes through it.
        return Count.apply(self.linear(x.flatten(1)), self.linear.weight, self.counts)


@pytest.mark.parametrize("method", COSTLY, ids=lambda method: method.key)
def test_a_step_makes_the_passes_it_is_said_to_cost(method, x, y):
    model = Probe()
    method(model, x, y, generator=torch.Generator().manual_seed(0)).loss.backward()
    cost = method.cost
    counted = {name: count / len(x) for name, count in model.counts.items()}
    assert counted == asdict(cost)


def test_costs_in_standard_steps():
    assert METHODS["standard"]().cost.standard_steps == 1
    assert DiGN(samples=3).cost.standard_steps == 4
    assert (DiGN(samples=3) + AugMix()).cost.standard_steps == 6  # the clean pass is shared
    assert METHODS["at"](steps=7).cost.standard_steps == pytest.approx((8 + 8 + 1) / 3)


def test_batches_get_the_same_logits_in_one_pass_as_in_several():
    model, batches = nn.Sequential(nn.Flatten(), nn.Linear(192, 5)), [torch.rand(n, 3, 8, 8) for n in (2, 4)]
    for one, several in zip(*(forward(model, batches, together=together) for together in (True, False)), strict=True):
        torch.testing.assert_close(one, several)


def test_a_model_that_loses_images_is_refused():
    with pytest.raises(UserError, match=r"logits of shape \(3, 192\) for 4 images"):
        forward(nn.Sequential(nn.Flatten(), First()), [torch.rand(2, 3, 8, 8)] * 2, together=True)


class First(nn.Module):
    def forward(self, x):
        return x[:3]
