import pytest
import torch

from dign.methods import PatchGaussian


def test_noise_in_a_square_of_each_image(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(PatchGaussian(side=0.5), recorder, x, y)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    for image, before in zip(seen, x, strict=True):
        noisy = (image != before).any(0)
        rows, columns = noisy.any(1).nonzero().flatten(), noisy.any(0).nonzero().flatten()
        assert max(rows.max() - rows.min(), columns.max() - columns.min()) <= 3
        assert noisy.float().mean() <= 16 / 64 and image.min() >= 0 and image.max() <= 1


def test_the_levels_are_diverse():
    x = torch.full((4000, 3, 8, 8), 0.5)
    method = PatchGaussian(side=1.0, sigma_max=0.1)
    made, _ = method.augment(x, torch.zeros(4000, dtype=torch.long), torch.Generator().manual_seed(0))
    added = (made - x).flatten(1)
    noisy = added != 0
    levels = (added.square().sum(1) / noisy.sum(1)).sqrt()
    assert levels.max() < 0.15 and levels.mean().item() == pytest.approx(0.05, abs=0.003)
    assert noisy.float().mean().item() == pytest.approx((6 / 8) ** 2, abs=0.02)  # 4 to 8 rows are inside
