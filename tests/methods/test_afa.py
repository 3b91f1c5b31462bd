import pytest
import torch

from dign.augment.waves import add_waves
from dign.methods import AFA


def test_cross_entropy_with_and_without_waves(oracle, recorder, x, y):
    outcome, (clean, waved), seen = oracle.run(AFA(strength=4.0, weight=0.5), recorder, x, y)
    assert torch.equal(seen[0], x)
    assert torch.equal(seen[1], add_waves(x, 4.0, torch.Generator().manual_seed(0)))
    loss = oracle.cross_entropy(clean, y) + 0.5 * oracle.cross_entropy(waved, y)
    assert outcome.loss.item() == pytest.approx(loss, rel=1e-5)
