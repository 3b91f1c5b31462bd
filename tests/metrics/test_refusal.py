"""Promised errors are kept as often as promised; bounds agree with SciPy."""

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.metrics.refusal import threshold_for_coverage, threshold_for_error, upper_bound


def test_the_bound_is_clopper_and_pearson_s():
    from scipy.stats import beta

    for wrong, count, level in ((0, 50, 0.1), (3, 80, 0.01), (700, 5000, 0.007), (49, 50, 0.05)):
        assert upper_bound(wrong, count, level) == pytest.approx(
            beta.ppf(1 - level, wrong + 1, count - wrong), rel=1e-6
        )
    assert upper_bound(5, 5, 0.1) == 1


def draw(generator, n):
    """An overconfident model: at confidence c it is right c^2 of the time."""
    confidence = generator.uniform(0.5, 1, n)
    return torch.from_numpy(confidence), torch.from_numpy(generator.random(n) < confidence**2)


@pytest.mark.slow
def test_a_promised_error_is_kept_in_nine_cases_of_ten():
    """At a threshold t the answers are wrong 1 - E[c^2 | c >= t] = 1 - (1 + t + t^2) / 3 of the time."""
    generator = np.random.default_rng(0)
    broken = 0
    for _ in range(200):
        t = threshold_for_error(*draw(generator, 500), 0.3)
        broken += 1 - (1 + t + t * t) / 3 > 0.3
    assert broken <= 20 + 8, "10 % of 200, and two standard deviations"


def test_more_images_allow_more_answers():
    generator = np.random.default_rng(1)
    few = np.mean([threshold_for_error(*draw(generator, 400), 0.3) for _ in range(20)])
    many = np.mean([threshold_for_error(*draw(generator, 5000), 0.3) for _ in range(20)])
    assert many < few


def test_images_of_one_confidence_are_answered_together():
    confidence = torch.tensor([0.9] * 300 + [0.5] * 300)
    correct = torch.tensor([True] * 300 + [False] * 300)
    assert threshold_for_error(confidence, correct, 0.05) == pytest.approx(0.9)
    assert threshold_for_error(confidence, torch.ones(600, dtype=torch.bool), 0.05) == pytest.approx(0.5)


def test_what_cannot_be_promised_says_what_to_do():
    with pytest.raises(
        UserError, match=r"cannot be promised from 10 held-out images, 0 of them wrong: promise a larger"
    ):
        threshold_for_error(torch.linspace(0.5, 1, 10), torch.ones(10, dtype=torch.bool), 0.01)
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(UserError, match="error"):
            threshold_for_error(torch.ones(10), torch.ones(10, dtype=torch.bool), wrong)
    with pytest.raises(UserError, match="none"):
        threshold_for_error(torch.ones(0), torch.ones(0, dtype=torch.bool), 0.1)


def test_coverage_is_the_share_of_the_images():
    confidence = torch.linspace(0, 1, 1000)
    for coverage in (0.001, 0.5, 0.8, 1.0):
        answered = confidence >= threshold_for_coverage(confidence, coverage)
        assert float(answered.double().mean()) == pytest.approx(coverage)
    with pytest.raises(UserError, match="coverage"):
        threshold_for_coverage(confidence, 0.0)
