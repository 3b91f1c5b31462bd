import pytest
import torch

from dign.methods import AugMax, AugMix


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_augmix(oracle, recorder, x, y):
    outcome, (p, first, second), (clean, one, two) = oracle.run(AugMix(), recorder, x, y)
    assert torch.equal(clean, x) and not torch.equal(one, two)
    assert outcome.loss.item() == pytest.approx(
        oracle.cross_entropy(p, y) + 12 * oracle.jensen_shannon(p, first, second), rel=1e-4
    )


def strengths(views, x):
    """How strong each view of each image is: in translated white images, the share of black."""
    return torch.stack([(view < x).float().mean((1, 2, 3)) for view in views])


@pytest.mark.parametrize("kind", [AugMix, AugMax])
def test_every_view_of_an_image_has_a_severity_of_its_own(kind):
    """With one severity for both views of an image their strengths correlate by about 0.2."""
    x = torch.ones(4000, 3, 12, 12)
    method = kind(operations=("translate-x",), depth=1, width=1)
    views = [chained[:, 0] / 255 for chained in method.chains(x, 2, generator())]
    assert abs(torch.corrcoef(strengths(views, x))[0, 1]) < 0.05
    # Within a view, the chains share their severity.
    (wide,) = kind(operations=("translate-x",), depth=1, width=2).chains(x, 1, generator())
    assert torch.corrcoef(strengths((wide / 255).unbind(1), x))[0, 1] > 0.1


def test_severities_are_drawn_from_one_to_ten_for_each_view(monkeypatch, x):
    seen = []

    def record(x, count, *, severity, **settings):
        seen.append(severity)
        return torch.zeros(len(x), count, *x.shape[1:], dtype=torch.uint8)

    monkeypatch.setattr("dign.methods.augmix.chains", record)
    AugMix().chains(x[:1].expand(3000, -1, -1, -1), 2, generator())
    (severity,) = seen
    assert severity.shape == (3000, 6)
    first, second = severity[:, :3], severity[:, 3:]
    assert (first == first[:, :1]).all() and (second == second[:, :1]).all(), "the chains of a view share theirs"
    assert (first[:, 0] == second[:, 0]).float().mean() < 0.15, "the views do not"
    assert torch.bincount(severity[:, 0], minlength=11)[1:].min() > 240 and severity.max() == 10


def test_a_fixed_severity_is_everyone_s(monkeypatch, x):
    seen = []
    monkeypatch.setattr(
        "dign.methods.augmix.chains",
        lambda x, count, *, severity, **settings: seen.append(severity) or x[:, None].expand(-1, count, -1, -1, -1),
    )
    AugMix(severity=3).chains(x, 2, generator())
    assert seen == [3]
