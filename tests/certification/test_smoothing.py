"""Certificates on models whose true radius is known, and counts that depend on nothing but the image."""

import math
from itertools import pairwise
from statistics import NormalDist

import pytest
import torch
from torch import nn

from dign.certification import certify, smoothed
from dign.certification.bounds import certified_radius, largest_radius
from dign.certification.smoothing import ABSTAIN, _certify_in_rounds, _rounds
from dign.core.errors import UserError


class Plane(nn.Module):
    """Two classes on either side of a plane: smoothing changes nothing, and the true radius is the distance to it."""

    def __init__(self, features: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        normal = torch.randn(features, generator=generator)
        self.register_buffer("normal", normal / normal.norm())
        self.calls = 0

    def forward(self, x):
        self.calls += len(x)
        side = (x.flatten(1) - 0.5) @ self.normal
        return torch.stack([-side, side], dim=1)

    def distance(self, x):
        return ((x.flatten(1).double() - 0.5) @ self.normal.double()).abs()


@pytest.fixture
def plane():
    return Plane(3 * 2 * 2)


@pytest.fixture
def images():
    return torch.rand(300, 3, 2, 2, generator=torch.Generator().manual_seed(1))


def truth(plane, images):
    return plane(images).argmax(1)


@pytest.mark.parametrize("radii", [None, (0.05, 0.1, 0.2)])
def test_no_certificate_exceeds_the_true_radius(plane, images, radii):
    found = certify(plane, images, sigma=0.12, n=1000, radii=radii)
    sure = found.classes != ABSTAIN
    assert sure.float().mean() > 0.5
    # alpha 0.001 for each of 300: three wrong ones have a probability of 0.4 %
    wrong = (found.radii > plane.distance(images)) | (sure & (found.classes != truth(plane, images)))
    assert int(wrong.sum()) <= 2


def test_many_draws_reach_the_true_radius(plane):
    image = torch.full((1, 3, 2, 2), 0.5) + 0.2 * plane.normal.view(1, 3, 2, 2)
    found = certify(plane, image, sigma=0.2, n=100_000)
    assert 0.95 * 0.2 <= found.radii.item() <= 0.2


def test_an_image_on_the_boundary_gets_no_answer(plane):
    image = torch.full((1, 3, 2, 2), 0.5)
    found = certify(plane, image, sigma=0.25, n=1000)
    assert found.classes.tolist() == [ABSTAIN] and found.radii.tolist() == [0.0]
    assert smoothed(plane, 0.25).classify(image).tolist() == [ABSTAIN]


def test_batches_and_positions_do_not_matter(plane, images):
    whole = certify(plane, images[:7], sigma=0.25, n=250)
    single = certify(plane, images[:7], sigma=0.25, n=250, batch_size=1)
    parts = [certify(plane, images[a:b], sigma=0.25, n=250, first=a) for a, b in ((0, 3), (3, 7))]
    assert whole.radii.tolist() == single.radii.tolist() == [r for part in parts for r in part.radii.tolist()]
    assert (
        whole.radii.tolist()
        != certify(plane, images[:7], sigma=0.25, n=250, generator=torch.Generator().manual_seed(5)).radii.tolist()
    )


@pytest.mark.slow
def test_stopping_early_decides_the_same_with_fewer_draws(plane, images):
    radii = (0.05, 0.1, 0.15, 0.2)
    full = certify(plane, images, sigma=0.12, n=10_000)
    early = certify(plane, images, sigma=0.12, n=10_000, radii=radii)
    labels = truth(plane, images)
    assert early.draws.double().mean() < 10_000 / 3
    for radius in radii:
        assert early.certified_accuracy(labels, radius) == pytest.approx(full.certified_accuracy(labels, radius), abs=3)


@pytest.mark.slow
@pytest.mark.parametrize("radii", [None, (0.001, 0.01)])
def test_alpha_is_kept_on_a_hard_case(radii):
    """p = 0.51 under noise, 20 000 repetitions: a radius beyond the true one may come in alpha of them, no more."""
    sigma, alpha, repetitions = 0.25, 0.05, 20_000
    true_radius = sigma * NormalDist().inv_cdf(0.51)
    plane = Plane(3)
    point = 0.5 + true_radius * plane.normal
    images = point.view(1, 3, 1, 1).expand(repetitions, -1, -1, -1)
    draws = {"n0": 1, "n": 400 if radii else 100, "batch_size": 10_000}
    found = certify(plane, images, sigma=sigma, alpha=alpha, radii=radii, **draws)
    wrong = (found.radii > true_radius).double().mean().item()
    assert 0 < wrong <= alpha + 3 * math.sqrt(alpha * (1 - alpha) / repetitions)


class Chances:
    """A counter whose copies get class 0 with probability p, without a model."""

    def __init__(self, p):
        self.p, self.generator = p, torch.Generator().manual_seed(4)

    def count(self, purpose, chosen, start, stop):
        draws = torch.full((len(chosen),), float(stop - start))
        hits = torch.binomial(draws, torch.full_like(draws, self.p), generator=self.generator).long()
        return torch.stack((hits, (stop - start) - hits), dim=1)


@pytest.mark.slow
def test_alpha_is_kept_over_ten_rounds():
    """The best bound of all rounds is wrong in alpha of 20 000 repetitions at most, where images go on for long."""
    sigma, alpha, repetitions, n = 0.25, 0.05, 20_000, 2000
    assert len(_rounds(n, alpha)) == 10
    nobody = torch.zeros(repetitions, dtype=torch.int64)
    true_radius = sigma * NormalDist().inv_cdf(0.6)
    found = _certify_in_rounds(Chances(0.6), nobody, sigma, n, alpha, (0.99 * true_radius, 1.01 * true_radius))
    wrong = (found.radii > true_radius).double().mean().item()
    assert alpha / 10 < wrong <= alpha
    assert found.draws.double().mean() > n / 2


def test_stopping_early_gives_up_hardly_a_radius_that_all_draws_certify():
    """Probabilities all over: of what the plain procedure certifies, less than a hundredth is lost."""
    sigma, n, alpha, radii = 0.12, 10_000, 0.001, (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
    lost = kept = draws = 0
    for p in [*torch.linspace(0.4, 0.99, 15).tolist(), 0.996, 0.999, 0.9999]:
        early = _certify_in_rounds(Chances(p), torch.zeros(40, dtype=torch.int64), sigma, n, alpha, radii)
        hits = Chances(p).count("certify", torch.zeros(40), 0, n)[:, 0].tolist()
        plain = torch.tensor([certified_radius(count, n, sigma, alpha) for count in hits])
        for radius in (1e-9, *radii):
            lost += int((plain >= radius).sum() - (early.radii >= radius).sum())
            kept += int((plain >= radius).sum())
        draws += int(early.draws.sum())
    assert kept > 2000 and abs(lost) < 0.01 * kept
    assert draws < 18 * 40 * n / 2


@pytest.mark.slow
def test_no_certificate_of_ten_thousand_exceeds_the_true_radius(plane):
    """At alpha 1e-7 a single wrong one among 10 000 has a probability of a thousandth."""
    images = torch.rand(10_000, 3, 2, 2, generator=torch.Generator().manual_seed(2))
    found = certify(plane, images, sigma=0.12, n0=10, n=200, alpha=1e-7, batch_size=10_000)
    sure = found.classes != ABSTAIN
    assert sure.float().mean() > 0.5
    assert (found.radii <= plane.distance(images)).all()
    assert (found.classes[sure] == truth(plane, images)[sure]).all()


def test_certified_accuracy_and_average_radius_by_hand():
    from dign.certification.smoothing import Certificates

    found = Certificates(torch.tensor([0, 1, ABSTAIN, 1]), torch.tensor([0.5, 0.2, 0.0, 0.4]), torch.ones(4))
    labels = torch.tensor([0, 0, 1, 1])
    assert found.certified_accuracy(labels, 0.0) == 50 and found.certified_accuracy(labels, 0.45) == 25
    assert found.average_radius(labels) == pytest.approx(0.9 / 4)


def test_the_model_is_left_as_it_was(plane, images):
    model = nn.Sequential(nn.Dropout(0.5), plane).train()
    before = images.clone()
    certify(model, images[:2], sigma=0.25, n=100)
    assert model.training and model[0].training and torch.equal(images, before)


@pytest.mark.parametrize("n", [1, 100, 799, 800, 1000, 10_000, 99_999, 100_000])
def test_the_rounds_rise_to_n_and_spend_alpha_once(n):
    rounds = _rounds(n, 0.001)
    assert list(rounds)[-1] == n and sum(rounds.values()) == pytest.approx(0.001)
    assert all(small % 100 == 0 and small < large for small, large in pairwise(rounds))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sigma": 0}, "`sigma` must be a number above 0"),
        ({"n": 50}, "`n` must be at least `n0`"),
        ({"alpha": 0}, "`alpha` is a probability"),
        ({"radii": (5.0,)}, "certify at most"),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(plane, images, settings, message):
    with pytest.raises(UserError, match=message):
        certify(plane, images[:1], **{"sigma": 0.25, **settings})


def test_a_model_that_is_no_classifier_is_refused(images):
    with pytest.raises(UserError, match="two or more classes"):
        certify(nn.Sequential(nn.Flatten(), nn.Linear(12, 1)), images[:1], sigma=0.25)


def test_what_n_can_certify_is_named(plane, images):
    assert largest_radius(1000, 0.25, 0.001) == pytest.approx(2.46 * 0.25, abs=0.002)
