"""The passes that a method says it costs are those it makes: no more, no fewer."""

import pytest
import torch
from torch import nn

from dign.methods import METHODS, AugMax, AugMix, DiGN

EVERY = [kind() for kind in METHODS.values()] + [DiGN() + AugMix(), DiGN(together=False), DiGN() + AugMax()]


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
        context.counts["input_only"] += 0 if context.trains else len(gradient)
        return gradient, None, None


class Probe(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(192, 5)
        self.counts = {"forward": 0, "backward": 0, "input_only": 0}

    def forward(self, x):
        # The last layer is counted: every pass, whether for parameters or for the input, goes through it.
        return Count.apply(self.linear(x.flatten(1)), self.linear.weight, self.counts)


@pytest.mark.parametrize("method", EVERY, ids=lambda method: method.key)
def test_a_step_makes_the_passes_it_is_said_to_cost(method, x, y):
    model = Probe()
    method(model, x, y, generator=torch.Generator().manual_seed(0)).loss.backward()
    cost = method.cost
    counted = {name: count / len(x) for name, count in model.counts.items()}
    assert counted == {"forward": cost.forward, "backward": cost.backward, "input_only": cost.input_only}


def test_costs_in_standard_steps():
    assert METHODS["standard"]().cost.standard_steps == 1
    assert DiGN(samples=3).cost.standard_steps == 4
    assert (DiGN(samples=3) + AugMix()).cost.standard_steps == 6  # the clean pass is shared
    assert METHODS["at"](steps=7).cost.standard_steps == pytest.approx((8 + 8 + 1) / 3)
