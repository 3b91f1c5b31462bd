import pytest
import torch
from real_torchvision import need

from dign.core.errors import UserError
from dign.methods import MixUp
from dign.methods.labels import mix_with_partners
from dign.methods.mixup import mixup


def test_images_and_labels_are_mixed_alike(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(MixUp(), recorder, x, y)
    expected, shares = 0.0, []
    for i in range(6):
        j = (i + 3) % 6
        # The share that makes the image, found from the image.
        share = ((seen[i] - x[j]) * (x[i] - x[j])).sum() / (x[i] - x[j]).square().sum()
        torch.testing.assert_close(seen[i], share * x[i] + (1 - share) * x[j])
        for label, part in ((y[i], share.item()), (y[j], 1 - share.item())):
            expected += part * oracle.cross_entropy([p[i]], label[None]) / 6
        shares.append(share.item())
    assert len({round(share, 4) for share in shares}) == 6 and all(0 <= share <= 1 for share in shares)
    assert outcome.loss.item() == pytest.approx(expected, rel=1e-4)


def test_shares_are_those_of_the_beta_distribution():
    y = torch.zeros(20_000, dtype=torch.long)
    for alpha in (0.2, 1.0):
        _, labels = MixUp(alpha=alpha).augment(torch.zeros(20_000, 1, 1, 1), y, torch.Generator().manual_seed(0))
        share = labels.shares[:, 0]
        assert share.mean().item() == pytest.approx(0.5, abs=0.01)
        assert share.var().item() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.03)


def test_two_images_become_what_torchvision_makes_of_them(x, y):
    """Its partner is the image before, which of two images is ours; its share is one for the batch."""
    v2 = need("torchvision.transforms.v2", "torchvision")
    theirs = v2.MixUp(alpha=1.0, num_classes=5)
    share = 0.3
    theirs._dist.sample = lambda shape: torch.tensor([share])
    expected, rows = theirs(x[:2], y[:2])
    torch.testing.assert_close(mixup(x[:2], torch.full((2,), share)), expected)
    labels = mix_with_partners(y[:2], torch.full((2,), share))
    torch.testing.assert_close(torch.zeros(2, 5).scatter_add(1, labels.classes, labels.shares), rows)


def test_alpha_is_positive():
    with pytest.raises(UserError, match=r"alpha must be a number of at least 0\.05"):
        MixUp(alpha=0.0)
