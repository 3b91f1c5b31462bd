"""What is said about the theory, from measured values made by hand."""

import math
from dataclasses import replace

import pytest
import torch

from dign.landscape.theory import TheoryPlan, TheoryValues
from dign.landscape.verdicts import consequences, lemma_1, proposition_1, theorem_1

TWO = torch.ones(2, dtype=torch.float64)
VALUES = TheoryValues(
    loss=math.log(2) * TWO,
    gradient_norm=2 * TWO,
    fisher_trace=torch.tensor([2.0, 1.0], dtype=torch.float64),
    quadratic=TWO[:, None],
    level=TWO[:, None],
    divergence=TWO[:, None, None],
    diverse_divergence=TWO[:, None, None],
    departure=torch.tensor([1.0, 0.0], dtype=torch.float64),
    fisher_square=torch.tensor([4.0, 5.0], dtype=torch.float64),
    largest=torch.tensor([1.5, 1.5], dtype=torch.float64),
    smallest=torch.tensor([-0.5, 0.0], dtype=torch.float64),
    residual=0.15 * TWO,
    random_change=torch.tensor([[0.1], [0.4]], dtype=torch.float64),
    steepest_change=torch.tensor([[0.2075], [0.1]], dtype=torch.float64),
    tail=TWO[:, None],
)


def test_departures_are_relative_to_the_fisher_matrix_and_pooled_as_squares():
    found = proposition_1(VALUES)
    assert found["pooled"] == pytest.approx(1 / 3) and found["q10"] == 0, "sqrt(1 / 9), and 0 / 5"
    nothing = replace(VALUES, fisher_square=0 * TWO)
    assert proposition_1(nothing)["median"] is None


def test_bounds_by_the_trace_are_counted_in_percent_of_images():
    """p_y |g|^2 = 4 / 2 is the first trace and above the second; 1.5 is below the first trace alone."""
    found = consequences(VALUES)
    assert found["gradient_below_trace"] == found["largest_eigenvalue_below_trace"] == 50
    assert found["smallest_eigenvalue_negative"] == 50
    assert found["largest_relative_residual"] == pytest.approx(0.1)


def test_theorem_1_by_hand():
    """At radius 0.1 the bound is 0.1 * 2 + 0.1^2 / 2 * 1.5 = 0.2075."""
    found = theorem_1(VALUES, TheoryPlan(radii=(0.1,)))
    assert found["random_holds"] == [50] and found["steepest_holds"] == [100]
    assert found["steepest_slack"] == [pytest.approx(1)], "the lower one of two"


def test_the_exact_tail_of_the_norm_is_that_of_real_draws_and_below_the_bound():
    found = lemma_1(12, TheoryPlan(tail_sigma=0.1))
    assert found["typical_norm"] == pytest.approx(0.1 * math.sqrt(12))
    for bound, exact, empirical in zip(found["bound"], found["exact"], found["empirical"], strict=True):
        assert exact is None or exact <= bound + 1e-9
        if exact is not None and exact > -1:
            assert 10**empirical == pytest.approx(10**exact, abs=0.03)
