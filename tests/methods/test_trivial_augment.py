import pytest
import torch

from dign.augment.noise import add_one_of_thirty
from dign.augment.policies import trivial_augment
from dign.methods import TrivialAugment


@pytest.mark.parametrize("noise", [False, True])
def test_cross_entropy_of_the_augmented_images(noise, oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(TrivialAugment(noise=noise), recorder, x, y)
    draw = torch.Generator().manual_seed(0)
    expected = trivial_augment(x, draw)
    assert torch.equal(seen, add_one_of_thirty(expected, draw) if noise else expected)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
