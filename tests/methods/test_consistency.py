"""Consistency regularization for certificates, against its formula written out."""

import math

import pytest
import torch

from dign.core.errors import UserError
from dign.methods import Consistency


def test_the_loss_by_hand(oracle, recorder, x, y):
    method = Consistency(sigma=0.3, weight=4.0, entropy_weight=0.7, samples=2)
    outcome, (p, q), seen = oracle.run(method, recorder, x, y)
    mean = [[(a + b) / 2 for a, b in zip(row, other, strict=True)] for row, other in zip(p, q, strict=True)]
    entropy = -sum(value * math.log(value) for row in mean for value in row) / len(mean)
    expected = (
        (oracle.cross_entropy(p, y) + oracle.cross_entropy(q, y)) / 2
        + 4.0 * (oracle.kl(mean, p) + oracle.kl(mean, q)) / 2
        + 0.7 * entropy
    )
    assert outcome.loss.item() == pytest.approx(expected, rel=1e-4)
    for view in seen:
        assert (view - x).std().item() == pytest.approx(0.3, rel=0.1)
    assert not torch.equal(*seen)


def test_it_needs_two_copies():
    with pytest.raises(UserError, match="samples"):
        Consistency(samples=1)


def test_a_masked_class_has_no_gradient_and_spoils_none(x, y):
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(x[0].numel(), 10))
    mask = torch.zeros(10)
    mask[9] = -math.inf
    model = Masked(net, mask)
    loss = Consistency()(model, x, y.clamp(max=8)).loss
    loss.backward()
    gradient = net[1].weight.grad
    assert loss.isfinite() and gradient.isfinite().all() and gradient[:9].abs().max() > 0 and not gradient[9].any()


class Masked(torch.nn.Module):
    """A network whose masked classes have logits of -inf."""

    def __init__(self, net, mask):
        super().__init__()
        self.net, self.mask = net, mask

    def forward(self, x):
        return self.net(x) + self.mask
