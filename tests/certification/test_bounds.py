"""Exact binomial bounds against SciPy, closed forms and the published figures."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta, binomtest

from dign.certification.bounds import certified_radius, largest_radius, lower_confidence_bound, majority_p_value
from dign.core.errors import UserError


@given(
    trials=st.sampled_from([1, 2, 10, 100, 1000, 10_000, 100_000]),
    share=st.floats(0, 1),
    alpha=st.sampled_from([0.05, 1e-3, 1e-5]),
)
def test_the_bound_is_scipys_beta_quantile(trials, share, alpha):
    hits = round(share * trials)
    p, q = lower_confidence_bound(hits, trials, alpha)
    if hits == 0:
        assert (p, q) == (0.0, 1.0)
        return
    assert p == pytest.approx(beta.ppf(alpha, hits, trials - hits + 1), rel=1e-7)
    assert q == pytest.approx(beta.isf(alpha, trials - hits + 1, hits), rel=1e-7)


@pytest.mark.parametrize(("trials", "largest"), [(1000, 2.46), (10_000, 3.20), (100_000, 3.81)])
def test_unanimous_draws_certify_the_published_radii(trials, largest):
    p, q = lower_confidence_bound(trials, trials, 0.001)
    assert p == pytest.approx(0.001 ** (1 / trials)) and p + q == pytest.approx(1)
    assert largest_radius(trials, 1.0, 0.001) == pytest.approx(largest, abs=0.005)


def test_half_of_the_draws_certify_nothing():
    assert certified_radius(500, 1000, 0.25, 0.001) == 0.0
    assert certified_radius(0, 1000, 0.25, 0.001) == 0.0


@pytest.mark.parametrize(("first", "second"), [(10, 0), (10, 3), (600, 500), (5000, 4800), (7, 7), (1, 0), (0, 0)])
def test_the_majority_test_is_scipys(first, second):
    wanted = binomtest(first, first + second, 0.5).pvalue if first + second else 1.0
    assert majority_p_value(first, second) == pytest.approx(wanted, rel=1e-9)


def test_more_successes_certify_more():
    radii = [certified_radius(hits, 1000, 1.0, 0.001) for hits in range(600, 1001, 10)]
    assert radii == sorted(radii) and radii[0] > 0 and math.isfinite(radii[-1])


@pytest.mark.parametrize(
    ("hits", "trials", "alpha"), [(11, 10, 0.1), (-1, 10, 0.1), (1, 0, 0.1), (1, 2, 0.0), (1, 2, 1.0)]
)
def test_nonsense_is_refused(hits, trials, alpha):
    with pytest.raises(UserError):
        lower_confidence_bound(hits, trials, alpha)
