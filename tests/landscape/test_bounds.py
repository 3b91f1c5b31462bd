"""The bounds in log space: against plain evaluation in low dimension, and against what they claim to bound."""

import math

import pytest
import torch
from scipy import stats

from dign.landscape.bounds import (
    log_norm_tail_bound,
    log_norm_tail_chernoff,
    log_stability_bound,
    log_stability_chernoff,
    loss_difference_bound,
    norm_tail_informative_from,
    stability_informative_from,
)


def test_theorem_1_by_hand() -> None:
    bound = loss_difference_bound(0.5, torch.tensor([2.0]), torch.tensor([8.0]))
    assert bound.item() == 0.5 * 2 + 0.5 * 8 * 0.25


@pytest.mark.parametrize("dimension", [1, 2, 10, 3072])
def test_lemma_1_holds_and_so_does_the_sharper_bound(dimension: int) -> None:
    """Both lie above the exact chi-square tail, and Chernoff's is the smaller one where Lemma 1 speaks."""
    sigma = 0.3
    u = torch.linspace(0, 3 * sigma * dimension, 400, dtype=torch.float64)
    exact = torch.tensor(stats.chi2.logsf((u / sigma).numpy() ** 2, df=dimension))
    lemma = log_norm_tail_bound(u, dimension, sigma)
    chernoff = log_norm_tail_chernoff(u, dimension, sigma)
    assert bool((exact <= lemma + 1e-9).all())
    assert bool((exact <= chernoff + 1e-9).all())
    if dimension > 1:
        informative = u > norm_tail_informative_from(dimension, sigma)
        assert bool((chernoff[informative] < lemma[informative]).all())


def test_lemma_1_speaks_from_the_norm_it_says() -> None:
    start = norm_tail_informative_from(3072, 0.1)
    assert log_norm_tail_bound(torch.tensor(start, dtype=torch.float64), 3072, 0.1).item() == pytest.approx(0, abs=1e-9)
    typical = 0.1 * math.sqrt(3072)
    assert start / typical == pytest.approx(math.sqrt(2 * math.log(2) * 3072))


def test_theorem_2_against_plain_evaluation_in_low_dimension() -> None:
    t, d, sigma, g, curvature = torch.tensor(3.0, dtype=torch.float64), 3, 0.2, 1.5, 4.0
    plain = 2**d * math.exp(-(3.0**2) / (8 * d * sigma**2 * g**2)) + 2**d * math.exp(
        -3.0 / (2 * d * sigma**2 * curvature)
    )
    found = log_stability_bound(t, d, sigma, torch.tensor(g, dtype=t.dtype), torch.tensor(curvature, dtype=t.dtype))
    assert found.item() == pytest.approx(math.log(plain))


def test_theorem_2_is_finite_at_the_dimension_of_images() -> None:
    bound = log_stability_bound(torch.tensor(1.0), 150528, 0.1, torch.tensor([0.0, 1.0]), torch.tensor([0.0, 3.0]))
    assert bool(bound.isfinite().all())


def test_theorem_2_speaks_from_where_the_bisection_says() -> None:
    g, curvature = torch.tensor([0.1, 2.0, 5.0]).double(), torch.tensor([9.0, 0.5, 0.0]).double()
    start = stability_informative_from(100, 0.1, g, curvature)
    assert bool((log_stability_bound(start * 1.0001, 100, 0.1, g, curvature) < 0).all())
    assert bool((log_stability_bound(start * 0.9999, 100, 0.1, g, curvature) > 0).all())


def test_both_tails_hold_for_a_quadratic_loss() -> None:
    """For L = g.d + d^T H d / 2 Theorem 1 is exact, so Theorem 2 must hold: H = diag, 200 000 draws, d = 3."""
    generator = torch.Generator().manual_seed(0)
    sigma, gradient, eigenvalues = 0.5, torch.tensor([1.0, -0.5, 0.2]).double(), torch.tensor([2.0, 0.3, 0.0]).double()
    delta = sigma * torch.randn(200_000, 3, generator=generator, dtype=torch.float64)
    change = (delta @ gradient + 0.5 * delta.square() @ eigenvalues).abs()
    for t in torch.linspace(0.1, 15, 40, dtype=torch.float64):
        empirical = float((change > t).double().mean())
        arguments = (t, 3, sigma, gradient.norm(), eigenvalues.max())
        assert empirical <= float(log_stability_bound(*arguments).exp())
        assert empirical <= float(log_stability_chernoff(*arguments).exp())


def test_the_sharper_tail_is_never_above_the_papers() -> None:
    t = torch.logspace(-3, 6, 200, dtype=torch.float64)
    g, curvature = torch.tensor(0.7).double(), torch.tensor(3.0).double()
    assert bool(
        (log_stability_chernoff(t, 3072, 0.1, g, curvature) <= log_stability_bound(t, 3072, 0.1, g, curvature)).all()
    )
