"""Promised errors are kept as often as promised; probabilities agree with SciPy."""

import contextlib

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.metrics.refusal import at_most, threshold_for_coverage, threshold_for_error


def test_the_probability_of_few_mistakes_is_the_binomial_distribution_s():
    from scipy.stats import binom

    for wrong, count, rate in ((0, 50, 0.1), (3, 80, 0.01), (700, 5000, 0.15), (49, 50, 0.05)):
        assert at_most(wrong, count, rate) == pytest.approx(binom.cdf(wrong, count, rate), rel=1e-6)
    assert at_most(5, 5, 0.1) == pytest.approx(1)


def draw(generator, n):
    """An overconfident model: at confidence c it is right c^2 of the time."""
    confidence = generator.uniform(0.5, 1, n)
    return torch.from_numpy(confidence), torch.from_numpy(generator.random(n) < confidence**2)


@pytest.mark.slow
def test_a_promised_error_is_kept_in_nine_cases_of_ten():
    """At a threshold t the answers are wrong 1 - E[c^2 | c >= t] = 1 - (1 + t + t^2) / 3 of the time."""
    generator = np.random.default_rng(0)
    broken = 0
    for _ in range(100):
        t = threshold_for_error(*draw(generator, 500), 0.3)
        broken += 1 - (1 + t + t * t) / 3 > 0.3
    assert broken <= 10 + 6, "10 % of 100, and two standard deviations"


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 500, 5000])
def test_a_promise_that_no_threshold_keeps_is_rarely_made(n):
    """The hardest case: confidence says nothing, and answers are wrong just more often than promised."""
    generator = np.random.default_rng(2)
    made = 0
    for _ in range(150):
        confidence, correct = generator.random(n), generator.random(n) >= 0.0501
        with contextlib.suppress(UserError):
            threshold_for_error(torch.from_numpy(confidence), torch.from_numpy(correct), 0.05)
            made += 1
    assert 0 < made <= 15 + 7, "10 % of 150, and two standard deviations"


def bonferroni_coverage(confidence, correct, error, level=0.1, steps=20):
    """The share of answers if twenty thresholds are tested at once, each at a twentieth of the level."""
    from scipy.stats import binom

    n = len(confidence)
    wrong = np.cumsum(~correct.numpy()[np.argsort(-confidence.numpy())])
    counts = [-(-step * n // steps) for step in range(1, steps + 1)]
    return max((k / n for k in counts if binom.cdf(wrong[k - 1], k, error) <= level / steps), default=0.0)


@pytest.mark.parametrize("n", [500, 5000])
def test_answers_more_than_testing_all_thresholds_at_once(n):
    generator = np.random.default_rng(3)
    ours, theirs = [], []
    for _ in range(10):
        confidence, correct = draw(generator, n)
        ours.append(float((confidence >= threshold_for_error(confidence, correct, 0.3)).double().mean()))
        theirs.append(bonferroni_coverage(confidence, correct, 0.3))
    assert np.mean(ours) > np.mean(theirs) + 0.02


def test_mistakes_among_the_most_confident_do_not_end_the_search():
    """25 of the top 50 are wrong, and none of the others."""
    confidence = torch.linspace(1, 0.5, 2000)
    correct = torch.arange(2000) % 2 + (torch.arange(2000) >= 50) > 0
    assert threshold_for_error(confidence, correct, 0.05) == pytest.approx(0.5)


def test_a_weak_model_with_many_images_promises_for_its_most_confident_ones():
    """Of 50 000 images the 2 500 most confident have 10 mistakes, the others are right half of the time."""
    confidence, correct = torch.linspace(1, 0.5, 50_000), torch.arange(50_000) % 2 == 0
    correct[:2500] = torch.arange(2500) % 250 > 0
    threshold = threshold_for_error(confidence, correct, 0.05)
    assert 2000 <= int((confidence >= threshold).sum()) <= 3000


def test_a_few_images_are_enough_where_none_is_wrong():
    """0.95^45 = 0.0994, and 0.95^44 = 0.105."""
    right = torch.ones(45, dtype=torch.bool)
    assert threshold_for_error(torch.linspace(0.5, 1, 45), right, 0.05) == pytest.approx(0.5)
    with pytest.raises(UserError, match="at least 45 confident ones"):
        threshold_for_error(torch.linspace(0.5, 1, 44), right[:44], 0.05)


def test_zeros_and_ones_are_booleans():
    confidence = torch.linspace(0.5, 1, 1000)
    correct = confidence > 0.6
    expected = threshold_for_error(confidence, correct, 0.05)
    for same in (correct.long(), correct.float(), correct.numpy()):
        assert threshold_for_error(confidence, same, 0.05) == expected


@pytest.mark.parametrize(
    ("confidence", "correct", "options", "message"),
    [
        (torch.ones(5), torch.ones(3, dtype=torch.bool), {}, r"one value for each confidence, \(5,\), not \(3,\)"),
        (torch.ones(2, 2), torch.ones(2, 2), {}, r"one number for each image, \(n,\), not \(2, 2\)"),
        (torch.ones(3), torch.tensor([7, 0, 1]), {}, "compare predictions with labels first"),
        (torch.tensor([0.5, float("nan")]), torch.ones(2), {}, "NaN"),
        (torch.ones(3), torch.ones(3), {"certainty": 1}, "`certainty` must be above 0 and below 1, as in 0.9, not 1"),
        (torch.ones(3), torch.ones(3), {"certainty": 0.0}, "`certainty` must be"),
    ],
)
def test_what_no_threshold_can_be_chosen_from_is_one_sentence(confidence, correct, options, message):
    with pytest.raises(UserError, match=message):
        threshold_for_error(confidence, correct, 0.05, **options)


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
