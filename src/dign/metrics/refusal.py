"""Thresholds on the confidence below which a model answers "unsure", chosen for a promised error or coverage."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dign.core.errors import UserError

STEPS = 20
"""Thresholds that are tried for a promised error."""
CERTAINTY = 0.9
"""How sure a promised error is: of ten models that promise it, nine keep it."""


def threshold_for_error(confidence: Tensor, correct: Tensor, error: float, certainty: float = CERTAINTY) -> float:
    """The lowest confidence at which answers are promised to be wrong no more often than `error`.

    Selection with guaranteed risk, after Geifman and El-Yaniv (2017): the thresholds that answer 100, 95, ... 5 % of
    the held-out images are tried, and the error of the answers at each is bounded from above by the binomial
    distribution, at a certainty that counts all of them. The promise is about images like the held-out ones.

    Args:
        confidence: (n,), of held-out images.
        correct: Which of them are right (n,).
        error: The promise, above 0 and below 1.
        certainty: The probability with which it is kept.

    Returns:
        The threshold: answer where the confidence is at least this.

    Raises:
        UserError: The held-out images cannot support the promise at any threshold.

    >>> confidence = torch.linspace(0.5, 1, 1000)
    >>> round(threshold_for_error(confidence, confidence > 0.6, 0.05), 2)  # 85 % answered would be 6 % wrong
    0.6
    """
    if not 0 < error < 1:
        raise UserError(f"`error` must be between 0 and 1, as in 0.05, not {error:g}.")
    if not len(confidence):
        raise UserError("A promise needs held-out images with labels, and there are none.")
    ordered, order = confidence.double().sort(descending=True)
    wrong = (~correct[order]).long().cumsum(0)
    level = (1 - certainty) / STEPS
    found = None
    for step in range(STEPS, 0, -1):
        accepted = math.ceil(step * len(ordered) / STEPS)
        while accepted < len(ordered) and ordered[accepted] == ordered[accepted - 1]:
            accepted += 1  # images of one confidence are answered together
        if upper_bound(int(wrong[accepted - 1]), accepted, level) <= error:
            found = accepted
            break
    if found is None:
        least = math.ceil(math.log(level) / math.log(1 - error))
        raise UserError(
            f"An error of {error:g} cannot be promised from {len(ordered)} held-out images, "
            f"{int(wrong[-1])} of them wrong: promise a larger `error`, or calibrate on more images (at least "
            f"{least} confident ones without a mistake)."
        )
    return float(ordered[found - 1])


def threshold_for_coverage(confidence: Tensor, coverage: float) -> float:
    """The confidence that the share `coverage` of held-out images reaches.

    Args:
        confidence: (n,), of held-out images.
        coverage: Share of the images that are to be answered, above 0 and at most 1.

    Returns:
        The threshold: answer where the confidence is at least this.

    Raises:
        UserError: There are no images, or the coverage is not between 0 and 1.

    >>> round(threshold_for_coverage(torch.tensor([0.5, 0.6, 0.7, 0.9]), 0.5), 4)
    0.7
    """
    if not 0 < coverage <= 1:
        raise UserError(f"`coverage` must be above 0 and at most 1, as in 0.8, not {coverage}.")
    if not len(confidence):
        raise UserError("A promise needs held-out images with labels, and there are none.")
    ordered = confidence.double().sort(descending=True).values
    return float(ordered[math.ceil(coverage * len(ordered) - 1e-9) - 1])


def upper_bound(wrong: int, count: int, level: float) -> float:
    """The largest error rate under which so few wrong ones still have probability `level` (Clopper and Pearson 1934).

    >>> round(upper_bound(0, 100, 0.05), 4)  # 1 - 0.05^(1/100)
    0.0295
    """
    if wrong >= count:
        return 1.0
    k = torch.arange(wrong + 1, dtype=torch.float64)
    n = torch.tensor(float(count), dtype=torch.float64)
    choose = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    low, high = wrong / count, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if middle in (0.0, 1.0):
            break
        tail = float((choose + k * math.log(middle) + (n - k) * math.log1p(-middle)).logsumexp(0).exp())
        low, high = (middle, high) if tail > level else (low, middle)
    return high
