"""Is a difference between two methods more than luck? Paired over seeds, from three seeds on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dign.report.analysis.study import Statistic

MIN_SEEDS = 3
LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """First minus second, over the seeds that both have; without enough of them only `mean` is known.

    Where they have no seed in common, `mean` is the difference of the means over the seeds of each, and `seeds` is 0.
    """

    mean: float
    seeds: int
    p: float | None = None
    """Two-sided p-value of the paired t-test; None: too few seeds."""
    half_width: float | None = None
    """Half of the 95 % confidence interval."""

    @property
    def decided(self) -> bool:
        return self.p is not None and self.p < LEVEL

    @property
    def p_text(self) -> str:
        assert self.p is not None
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"

    @property
    def verdict(self) -> str:
        if self.p is None:
            return "too few seeds"
        return "significant" if self.decided else "not significant"


def compare(first: Statistic, second: Statistic) -> Difference:
    """The paired t-test over the seeds that both statistics have.

    With d_s the difference at seed s and sd its sample standard deviation, t = mean(d) / (sd / sqrt(n)) follows
    Student's distribution with n-1 degrees of freedom where the methods do not differ.
    """
    seeds = sorted(first.by_seed.keys() & second.by_seed.keys())
    if not seeds:
        return Difference(first.mean - second.mean, 0)
    differences = [first.by_seed[seed] - second.by_seed[seed] for seed in seeds]
    count = len(differences)
    mean = math.fsum(differences) / count
    if count < MIN_SEEDS:
        return Difference(mean, count)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in differences) / (count - 1))
    error = deviation / math.sqrt(count)
    if error < 1e-12:
        return Difference(mean, count, p=1.0 if abs(mean) < 1e-12 else 0.0, half_width=0.0)
    p = two_sided_p(mean / error, count - 1)
    return Difference(mean, count, p=p, half_width=error * critical_value(count - 1))


def two_sided_p(t: float, freedom: int) -> float:
    """P(|T| > |t|) for Student's T with a whole number of degrees of freedom (Abramowitz & Stegun 26.7.3-4).

    With theta = atan(t / sqrt(freedom)), P(|T| < t) is a finite sum of powers of cos(theta): no numerical
    library is needed.
    """
    theta = math.atan(abs(t) / math.sqrt(freedom))
    cosine = math.cos(theta)
    total, term = 0.0, 1.0 if freedom % 2 == 0 else cosine
    for step in range(1 if freedom % 2 == 0 else 2, freedom, 2):
        total += term
        term *= cosine**2 * step / (step + 1)
    even, odd = math.sin(theta) * total, 2 / math.pi * (theta + math.sin(theta) * total)
    return min(max(1 - (even if freedom % 2 == 0 else odd), 0.0), 1.0)


def critical_value(freedom: int, level: float = LEVEL) -> float:
    """The t at which the two-sided p-value is `level`, by bisection."""
    low, high = 0.0, 1e3
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, freedom) > level else (low, middle)
    return (low + high) / 2


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's correction for several comparisons at once; None stays None and does not count."""
    order = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(order):
        largest = max(largest, min(1.0, p * (len(order) - rank)))
        adjusted[index] = largest
    return adjusted
