"""Exact binomial bounds, and the radius that follows from them (Cohen, Rosenfeld and Kolter, 2019)."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

from dign.core.checks import check_integer
from dign.core.errors import UserError

_NORMAL = NormalDist()


@lru_cache(maxsize=65536)
def lower_confidence_bound(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """The one-sided Clopper-Pearson bound: p with P(X >= successes) = alpha for X ~ Bin(trials, p).

    With probability at least 1 - alpha the true probability of success is not below it.

    Args:
        successes: From 0 to `trials`.
        trials: Draws in all.
        alpha: Probability of error, above 0 and below 1.

    Returns:
        (p, 1 - p), each with all its digits: near 1 the radius depends on 1 - p.

    >>> [round(value, 5) for value in lower_confidence_bound(1000, 1000, 0.001)]  # 0.001 ** (1 / 1000)
    [0.99312, 0.00688]
    """
    check_integer(1, trials=trials)
    if not 0 <= successes <= trials:
        raise UserError(f"successes must be from 0 to the {trials} trials, not {successes}.")
    check_alpha(alpha)
    if successes == 0:
        return 0.0, 1.0
    if successes == trials:
        return math.exp(math.log(alpha) / trials), -math.expm1(math.log(alpha) / trials)
    # Newton's method in the logit of p, in which the log of the tail is concave (a binomial that is cut off varies less
    # than before): from below, where even P(X >= 1) is less than alpha, it rises to the root and never passes it.
    a, b, logit = successes, trials - successes + 1, math.log(alpha) - math.log(trials)
    for _ in range(200):
        p, q = _logistic(logit), _logistic(-logit)
        tail = _log_upper_tail(successes, trials, p, q)
        density = a * math.log(p) + b * math.log(q) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        step = (math.log(alpha) - tail) / math.exp(density - tail)
        logit += step
        if step < 1e-13 * max(1.0, abs(logit)):
            break
    return _logistic(logit), _logistic(-logit)


def certified_radius(successes: int, trials: int, sigma: float, alpha: float) -> float:
    """The l2 radius sigma * Phi^-1(p) within which the smoothed answer is certain with probability 1 - alpha.

    Args:
        successes: Noisy copies that got the answer.
        trials: Noisy copies in all.
        sigma: Standard deviation of the noise, in [0,1] pixel units.
        alpha: Probability of a wrong certificate.

    Returns:
        The radius; 0 where p <= 1/2, which certifies nothing.

    >>> round(certified_radius(1000, 1000, 1.0, 0.001), 2)
    2.46
    """
    p, q = lower_confidence_bound(successes, trials, alpha)
    return -sigma * _NORMAL.inv_cdf(q) if p > 0.5 else 0.0


def largest_radius(trials: int, sigma: float, alpha: float) -> float:
    """The radius that `trials` unanimous draws certify: no more can be had from so many.

    >>> round(largest_radius(100_000, 1.0, 0.001), 2)
    3.81
    """
    return certified_radius(trials, trials, sigma, alpha)


def majority_p_value(first: int, second: int) -> float:
    """Two-sided exact binomial test: how likely is a split as uneven as first : second, if both were equally likely?

    >>> round(majority_p_value(10, 0), 9)  # 2 / 2 ** 10
    0.001953125
    """
    trials = first + second
    if first == second:
        return 1.0
    return min(1.0, 2 * math.exp(_log_upper_tail(max(first, second), trials, 0.5, 0.5)))


def check_alpha(alpha: float) -> None:
    """Refuse what is not a probability of error."""
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise UserError(f"`alpha` is a probability of error, above 0 and below 1, not {alpha!r}.")


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def _log_upper_tail(successes: int, trials: int, p: float, q: float) -> float:
    """log P(X >= successes), X ~ Bin(trials, p), q = 1 - p; the regularized incomplete beta function I_p(k, n-k+1)."""
    a, b = successes, trials - successes + 1
    if a == 0:
        return 0.0
    if p > (a + 1) / (a + b + 2):  # the continued fraction converges fast below the mean: use I_p(a,b) = 1 - I_q(b,a)
        complement = _log_beta_fraction(b, a, q, p)
        return math.log1p(-math.exp(complement)) if complement < 0 else -math.inf
    return _log_beta_fraction(a, b, p, q)


def _log_beta_fraction(a: float, b: float, x: float, y: float) -> float:
    """log I_x(a, b), y = 1 - x, by its continued fraction (modified Lentz)."""
    front = a * math.log(x) + b * math.log(y) - math.log(a) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    tiny = 1e-300
    fraction, c, d = 1.0, 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    fraction = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 + even * d
        d = 1 / (d if abs(d) > tiny else tiny)
        c = 1 + even / c
        c = c if abs(c) > tiny else tiny
        fraction *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 + odd * d
        d = 1 / (d if abs(d) > tiny else tiny)
        c = 1 + odd / c
        c = c if abs(c) > tiny else tiny
        change = d * c
        fraction *= change
        if abs(change - 1) < 1e-15:
            return front + math.log(fraction)
    raise AssertionError("the continued fraction did not converge")
