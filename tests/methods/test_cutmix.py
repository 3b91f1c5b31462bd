import pytest
import torch
from real_torchvision import need

from dign.core.errors import UserError
from dign.methods import CutMix
from dign.methods.cutmix import cutmix
from dign.methods.labels import mix_with_partners


def test_a_box_is_pasted_and_labels_are_mixed_by_area(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(CutMix(probability=1.0), recorder, x, y)
    expected, areas = 0.0, []
    for i in range(6):
        j = (i + 3) % 6
        pasted = (seen[i] != x[i]).all(0)
        assert torch.equal(seen[i], torch.where(pasted, x[j], x[i]))
        rows, columns = pasted.any(1).nonzero().flatten(), pasted.any(0).nonzero().flatten()
        area = pasted.sum().item() / 64
        if area:  # a full rectangle
            assert area == (rows.max() - rows.min() + 1).item() * (columns.max() - columns.min() + 1).item() / 64
        for label, part in ((y[i], 1 - area), (y[j], area)):
            expected += part * oracle.cross_entropy([p[i]], label[None]) / 6
        areas.append(area)
    assert len(set(areas)) > 2
    assert outcome.loss.item() == pytest.approx(expected, rel=1e-5)


def test_as_many_images_get_a_box_as_the_probability_says():
    x = torch.arange(4000.0).view(-1, 1, 1, 1).expand(-1, 1, 8, 8)
    for probability in (0.0, 0.5, 1.0):
        method = CutMix(probability=probability, alpha=50.0)  # shares near a half: no box is empty
        mixed, _ = method.augment(x, torch.zeros(4000, dtype=torch.long), torch.Generator().manual_seed(0))
        changed = (mixed != x).any(3).any(2).float().mean().item()
        assert changed == pytest.approx(probability, abs=0.03)


@pytest.mark.parametrize(("share", "row", "column"), [(0.3, 2, 6), (0.75, 7, 0), (0.99, 4, 4), (0.0, 3, 3)])
def test_two_images_become_what_torchvision_makes_of_them(share, row, column, x, y, monkeypatch):
    """Its partner is the image before, which of two images is ours; its box is one for the batch."""
    v2 = need("torchvision.transforms.v2", "torchvision")
    theirs = v2.CutMix(alpha=1.0, num_classes=5)
    theirs._dist.sample = lambda shape: torch.tensor([share])
    drawn = iter([column, row])  # in the order in which it asks for them
    real = torch.randint
    monkeypatch.setattr(torch, "randint", lambda high, size=(), **rest: torch.full(size, next(drawn)))
    expected, rows = theirs(x[:2], y[:2])
    monkeypatch.setattr(torch, "randint", real)
    mixed, left = cutmix(x[:2], torch.full((2,), share), torch.tensor([[row, column]] * 2))
    assert torch.equal(mixed, expected)
    labels = mix_with_partners(y[:2], left)
    torch.testing.assert_close(torch.zeros(2, 5).scatter_add(1, labels.classes, labels.shares), rows)


def test_a_probability_is_a_fraction():
    with pytest.raises(UserError, match=r"probability must be a fraction, 0 to 1, not 1\.5"):
        CutMix(probability=1.5)
