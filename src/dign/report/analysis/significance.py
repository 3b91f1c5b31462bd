"""Is a difference between two methods more than luck? Over seeds, from three on, and over images, where they are kept.

Seeds say whether a difference comes back with another training, images whether it comes back with other test images.
The two errors add up: a difference counts where it is large against both together, and against that over seeds. Images
alone, where there are fewer than three seeds, speak of the two models that were trained, not of their methods. Where
many differences are looked at, or the best is picked by the data first, `correct` makes p-values and intervals hold for
all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

from dign.report.analysis.image_tests import ImageDifference, compare_images, keep_images
from dign.report.analysis.quantities import Quantity
from dign.report.analysis.study import Group, Statistic

MIN_SEEDS = 3
LEVEL = 0.05
MOST_FREEDOM = 300
"""Degrees of freedom from which on Student's distribution is nearly the normal one."""
TEST = (
    "Tests: paired t-test over the seeds that both have, from three on, and, where results keep what each image got, "
    "one with the errors over seeds and over images (paired; calibration by bootstrap) together; the larger p-value "
    "counts. Without "
    "such images it is about these test images. With fewer than three seeds the test is over images alone (McNemar's "
    "for two models on one condition), and about these trained models: another training may turn it around."
)


@dataclass(frozen=True)
class Difference:
    """First minus second, over the seeds that both have.

    Where they have no seed in common, `mean` is the difference of the means over the seeds of each, and `seeds` is 0.
    """

    mean: float
    seeds: int
    p_seeds: float | None = None
    """Two-sided p-value of the paired t-test over seeds; None: too few seeds."""
    seed_error: float | None = None
    """Standard error over seeds; None where all seeds differ by the same."""
    images: ImageDifference | None = None
    """The same difference over images; None where they are not kept."""
    tests: int = 1
    """Comparisons that were made at once."""
    p_corrected: float | None = None
    """The corrected p-value, where it is not `tests` times the plain one."""

    @property
    def p(self) -> float | None:
        """The p-value that decides, corrected for `tests`; None where nothing can be tested."""
        if self.p_corrected is not None:
            return self.p_corrected
        plain = self.plain_p
        return None if plain is None else min(1.0, plain * self.tests)

    @property
    def plain_p(self) -> float | None:
        """Over seeds, or over seeds and images together, whichever is larger; over images where there are few seeds."""
        if self.images is None or self.p_seeds is None:
            return self.p_seeds if self.images is None else self.images.p
        if self.seed_error is None:
            return max(self.p_seeds, self.images.p)
        error, freedom = self._both_errors(self.seed_error, self.images.error)
        return max(self.p_seeds, two_sided_p(self.mean / error, freedom))

    def _both_errors(self, over_seeds: float, over_images: float) -> tuple[float, int]:
        """The error over seeds and images together, and its degrees of freedom (Welch and Satterthwaite)."""
        error = math.hypot(over_seeds, over_images)
        return error, min(int((self.seeds - 1) * (error / over_seeds) ** 4), MOST_FREEDOM)

    @property
    def half_width(self) -> float | None:
        """Half of the confidence interval that holds for all `tests` together; None where an error is not known."""
        if self.p_seeds is not None and self.seed_error is None:
            return None  # all seeds differ by the same: images alone would make it too narrow
        level = LEVEL / self.tests
        if self.seed_error is None:
            return self.images.error * NormalDist().inv_cdf(1 - level / 2) if self.images else None
        width = self.seed_error * critical_value(self.seeds - 1, level)
        if self.images is None:
            return width
        error, freedom = self._both_errors(self.seed_error, self.images.error)
        return max(width, error * critical_value(freedom, level))

    @property
    def decided(self) -> bool:
        return self.p is not None and self.p < LEVEL

    @property
    def p_text(self) -> str:
        assert self.p is not None
        return "p < 0.001" if self.p < 0.001 else f"p = {self.p:.3f}"

    @property
    def tested(self) -> str:
        """'3 seeds and 10000 images'."""
        seeds = [f"{self.seeds} seeds"] if self.p_seeds is not None else []
        return " and ".join([*seeds, *([f"{self.images.images} images"] if self.images else [])])

    @property
    def verdict(self) -> str:
        if self.p is None:
            return "too few seeds" if self.seeds else "no seeds in common"
        return "significant" if self.decided else "not significant"


def compare_groups(first: Group, second: Group, quantity: Quantity) -> Difference | None:
    """The difference of two groups in a quantity, over seeds and over images; None where one does not have it."""
    sides = first.statistic(quantity), second.statistic(quantity)
    if sides[0] is None or sides[1] is None:
        return None
    return replace(compare(*sides), images=compare_images(first, second, quantity))


def count_pairs(groups: Sequence[Group], quantity: Quantity) -> int:
    """How many pairs of groups can be tested in a quantity: three seeds in common, or records of their images."""

    def testable(first: Group, second: Group) -> bool:
        sides = first.statistic(quantity), second.statistic(quantity)
        if sides[0] is None or sides[1] is None:
            return False
        in_common = sides[0].by_seed.keys() & sides[1].by_seed.keys()
        return len(in_common) >= MIN_SEEDS or keep_images(first, second, quantity)

    return sum(testable(*pair) for pair in combinations(groups, 2))


def correct(differences: Sequence[Difference | None], tests: int | None = None) -> list[Difference | None]:
    """Differences with p-values and intervals that hold for all of them together.

    With `tests`, how many comparisons there might have been (all pairs, where the best was picked by the data), by
    Bonferroni; otherwise p-values by Holm over those given, and intervals by Bonferroni over them.
    """
    known = [difference for difference in differences if difference is not None and difference.plain_p is not None]
    if tests is not None:
        return [difference and replace(difference, tests=max(tests, 1)) for difference in differences]
    corrected = holm([difference.plain_p if difference else None for difference in differences])
    return [
        difference and replace(difference, tests=max(len(known), 1), p_corrected=p)
        for difference, p in zip(differences, corrected, strict=True)
    ]


def compare(first: Statistic, second: Statistic) -> Difference:
    """The paired t-test over the seeds that both statistics have.

    With d_s the difference at seed s and sd its sample standard deviation, t = mean(d) / (sd / sqrt(n)) follows
    Student's distribution with n-1 degrees of freedom where the methods do not differ. Where all n seeds differ by
    exactly the same there is no spread to measure with: then the sign test decides, 2 / 2^n.
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
        return Difference(mean, count, p_seeds=1.0 if abs(mean) < 1e-12 else 2 / 2**count)
    return Difference(mean, count, p_seeds=two_sided_p(mean / error, count - 1), seed_error=error)


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
    low, high = 0.0, 1e6
    for _ in range(100):
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
