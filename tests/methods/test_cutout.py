import pytest
import torch

from dign.core.errors import UserError
from dign.methods import Cutout


def test_a_square_is_covered_and_nothing_else(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(Cutout(side=0.5, fill=0.25), recorder, x, y)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y), rel=1e-5)
    for image, before in zip(seen, x, strict=True):
        covered = (image == 0.25).all(0)
        assert torch.equal(image[:, ~covered], before[:, ~covered])
        rows, columns = covered.any(1).nonzero().flatten(), covered.any(0).nonzero().flatten()
        sides = [(each.max() - each.min() + 1).item() for each in (rows, columns)]
        assert covered.sum() == sides[0] * sides[1] and all(2 <= side <= 4 for side in sides)  # a part may be outside


def test_the_center_is_any_pixel():
    """A pixel is covered if the center is at most 8 before or 7 after it: near the edge, as often as pixels are."""
    x = torch.ones(20_000, 1, 32, 32)
    made, _ = Cutout().augment(x, torch.zeros(20_000, dtype=torch.long), torch.Generator().manual_seed(0))
    covered = (made[:, 0] != 1).float().mean(0)
    assert covered[16, 16].item() == pytest.approx((16 / 32) ** 2, abs=0.015)
    assert covered[0, 0].item() == pytest.approx((9 / 32) ** 2, abs=0.015)
    assert covered[31, 31].item() == pytest.approx((8 / 32) ** 2, abs=0.015)


def test_settings_out_of_range():
    with pytest.raises(UserError, match="fill must be a fraction"):
        Cutout(fill=2.0)
    with pytest.raises(UserError, match="side must be a fraction"):
        Cutout(side=16)
