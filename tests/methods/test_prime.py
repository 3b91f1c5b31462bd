import pytest
import torch

from dign.augment.primitives import mix_primitives
from dign.core.errors import UserError
from dign.methods import PRIME, DiGN


def test_the_divergence_of_the_image_and_two_mixtures(oracle, recorder, x, y):
    outcome, (clean, first, second), seen = oracle.run(PRIME(weight=5.0), recorder, x, y)
    assert torch.equal(seen[0], x)
    views = mix_primitives(x, 2, generator=torch.Generator().manual_seed(0))
    assert all(torch.equal(view, batch) for view, batch in zip(views, seen[1:], strict=True))
    loss = oracle.cross_entropy(clean, y) + 5 * oracle.jensen_shannon(clean, first, second)
    assert outcome.loss.item() == pytest.approx(loss, rel=1e-4)


def test_with_dign_the_clean_pass_is_shared():
    assert (DiGN() + PRIME()).cost.forward == 6


def test_depth_and_width_are_counts():
    for settings in ({"depth": 0}, {"width": 0}):
        with pytest.raises(UserError, match="must be a whole number"):
            PRIME(**settings)
