"""Risk and coverage against slow definitions, all orders of ties, and closed forms."""

from itertools import permutations

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import accuracy_at_coverage, augrc, aurc, risk_coverage


def predictions(confidence, correct):
    p = torch.tensor(confidence, dtype=torch.float64)
    return torch.stack([p, 1 - p], 1), torch.where(torch.tensor(correct), 0, 1)


def slow(confidence, correct):
    order = sorted(range(len(confidence)), key=lambda index: -confidence[index])
    wrong = [not correct[index] for index in order]
    n = len(wrong)
    return sum(sum(wrong[:k]) / k for k in range(1, n + 1)) / n, sum(sum(wrong[:k]) for k in range(1, n + 1)) / n**2


def test_areas_agree_with_the_slow_definition():
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0.5, 1, 97).tolist()
    correct = (generator.random(97) < 0.7).tolist()
    given, (area, generalized) = predictions(confidence, correct), slow(confidence, correct)
    assert aurc(*given) == pytest.approx(100 * area)
    assert augrc(*given) == pytest.approx(100 * generalized)


def test_ties_count_as_the_mean_over_all_orders():
    correct = [True, False, False, True]
    orders = [slow([0.9, 0.8, 0.7, 0.6], list(order)) for order in permutations(correct)]
    given = predictions([0.7] * 4, correct)
    assert aurc(*given) == pytest.approx(100 * np.mean([area for area, _ in orders]))
    assert augrc(*given) == pytest.approx(100 * np.mean([area for _, area in orders]))


def test_augrc_of_a_perfect_and_of_a_useless_order():
    """With error rate e it is e^2 / 2 where wrong ones come last, and e / 2 where the confidence says nothing."""
    n, wrong = 2000, 400
    correct = [True] * (n - wrong) + [False] * wrong
    perfect = predictions(np.linspace(1, 0.5, n).tolist(), correct)
    useless = predictions([0.8] * n, correct)
    assert augrc(*perfect) == pytest.approx(100 * 0.2**2 / 2, abs=0.02)
    assert augrc(*useless) == pytest.approx(100 * 0.2 / 2, abs=0.02)


def test_accuracy_at_coverage_and_the_curve():
    given = predictions([0.95, 0.9, 0.8, 0.7, 0.6], [True, True, False, True, False])
    assert accuracy_at_coverage(*given, 0.4) == 100
    assert accuracy_at_coverage(*given, 0.6) == pytest.approx(200 / 3)
    assert accuracy_at_coverage(*given, 1.0) == pytest.approx(60)
    confidence, predicted = given[0].max(1)
    coverage, risk = risk_coverage(confidence, predicted == given[1])
    assert coverage == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0]) and risk == pytest.approx([0, 0, 1 / 3, 1 / 4, 2 / 5])
    with pytest.raises(UserError, match="coverage"):
        accuracy_at_coverage(*given, 0.0)
