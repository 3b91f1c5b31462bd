import pytest
import torch

from dign.augment.policies import auto_augment
from dign.methods import AutoAugment


def test_cross_entropy_of_the_augmented_images(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(AutoAugment(), recorder, x, y)
    assert torch.equal(seen, auto_augment(x, torch.Generator().manual_seed(0))) and not torch.equal(seen, x)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
