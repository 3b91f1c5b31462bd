"""Thresholds on the confidence below which a model answers "unsure", chosen for a promised error or coverage."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dign.core.errors import UserError

STEPS = 100
"""Thresholds that a search for a promised error may reach: those that answer 1, 2, ... 100 % of the images."""
STARTS = (0.1, 0.3, 0.6)
"""Shares of answered images from which searches for lower thresholds start; the first earlier in many images."""
AMPLE = 3.0
"""The first search starts at this many times the answers that would be enough if none of them were wrong."""
CERTAINTY = 0.9
"""How sure a promised error is: of ten models, whether or not their images support a promise, at most one breaks it."""


def threshold_for_error(confidence: Tensor, correct: Tensor, error: float, certainty: float = CERTAINTY) -> float:
    """The lowest confidence at which answers are promised to be wrong no more often than `error`.

    Selection with guaranteed risk (Geifman and El-Yaniv 2017) by fixed-sequence testing (Angelopoulos et al. 2021):
    the thresholds are lowered from the one that answers 10 % of the held-out images, or as few as can support the
    promise well, 1 % more at a time, for as long as so few wrong answers would be improbable at a true error of
    `error`, by the binomial distribution. Since a search ends at the first threshold that fails, its steps need no
    correction for their number. One that starts at the strictest threshold can end at once by bad luck, so others
    start at 30 % and at 60 %, and the allowed probability of failure is divided by the number of searches. A start with
    so few images that even no mistake would not be enough is left out.

    Which thresholds are tried, and in which order, follows from the confidences alone, not from `correct`. The
    promise is about images like the held-out ones, and about models that are not more often right where they are less
    confident.

    Args:
        confidence: (n,), of held-out images.
        correct: Which of them are right (n,), as booleans or as 0 and 1.
        error: The promise, above 0 and below 1.
        certainty: The probability with which it is kept, above 0 and below 1.

    Returns:
        The threshold: answer where the confidence is at least this.

    Raises:
        UserError: A shape or a value is wrong, or the held-out images do not support the promise where a search starts.

    >>> confidence = torch.linspace(0.5, 1, 1000)
    >>> round(threshold_for_error(confidence, confidence > 0.6, 0.05), 2)  # 85 % answered would be 6 % wrong
    0.59
    """
    for name, value, example in (("error", error, 0.05), ("certainty", certainty, 0.9)):
        if not 0 < value < 1:
            raise UserError(f"`{name}` must be above 0 and below 1, as in {example}, not {value:g}.")
    confidence = _check_confidence(confidence)
    ordered, order = confidence.sort(descending=True)
    wrong = (~_check_correct(correct, confidence)[order]).long().cumsum(0)
    counts = _answered_counts(ordered)
    starts = _choose_starts(counts, error, 1 - certainty)
    found = 0
    for start in starts:
        for count in counts[counts.index(start) :] if start > found else ():  # else an earlier search came by
            if at_most(int(wrong[count - 1]), count, error) > (1 - certainty) / len(starts):
                break
            found = count
    if not found:
        least = math.ceil(math.log(1 - certainty) / math.log1p(-error))
        raise UserError(
            f"An error of {error:g} cannot be promised from {len(ordered)} held-out images, "
            f"{int(wrong[-1])} of them wrong: promise a larger `error`, or calibrate on more images (at least {least} "
            "confident ones without a mistake, or more with few)."
        )
    return float(ordered[found - 1])


def _answered_counts(ordered: Tensor) -> list[int]:
    """How many images the thresholds answer, in ascending order; those of one confidence are answered together.

    >>> _answered_counts(torch.tensor([0.9, 0.8, 0.8, 0.7]))
    [1, 3, 4]
    """
    counts = torch.tensor([math.ceil(step * len(ordered) / STEPS) for step in range(1, STEPS + 1)])
    ends = torch.searchsorted(-ordered, -ordered[counts - 1], right=True)
    return sorted(set(ends.tolist()))


def _choose_starts(counts: list[int], error: float, risk: float) -> list[int]:
    """Counts of answers at which searches start, without those that could not pass even if all answers were right.

    >>> _choose_starts(list(range(10, 1010, 10)), 0.05, 0.1), _choose_starts([20, 40, 60], 0.05, 0.1)
    ([100, 300, 600], [60])
    >>> _choose_starts(list(range(50, 5050, 50)), 0.05, 0.1)  # 67 right answers would be enough
    [200, 1500, 3000]
    """
    starts = sorted({next(count for count in counts if count >= share * counts[-1]) for share in STARTS})
    while starts and (1 - error) ** starts[0] > risk / len(starts):
        starts = starts[1:]
    if len(starts) == len(STARTS):
        ample = AMPLE * math.log(risk / len(starts)) / math.log1p(-error)
        starts[0] = next(count for count in counts if count >= min(ample, starts[0]))
    return starts or [count for count in counts if (1 - error) ** count <= risk][:1]


def _check_confidence(confidence: Tensor) -> Tensor:
    """The confidences (n,) in float64, on the CPU."""
    confidence = torch.as_tensor(confidence).detach().cpu().double()
    if confidence.dim() != 1:
        raise UserError(f"`confidence` must have one number for each image, (n,), not {tuple(confidence.shape)}.")
    if not len(confidence):
        raise UserError("A promise needs held-out images with labels, and there are none.")
    if bool(confidence.isnan().any()):
        raise UserError("`confidence` has values that are not numbers (NaN): check the model's outputs.")
    return confidence


def _check_correct(correct: Tensor, confidence: Tensor) -> Tensor:
    """Which images are right, bool, on the CPU."""
    correct = torch.as_tensor(correct).cpu()
    if correct.shape != confidence.shape:
        raise UserError(
            f"`correct` must have one value for each confidence, {tuple(confidence.shape)}, not {tuple(correct.shape)}."
        )
    if not bool(((correct == 0) | (correct == 1)).all()):
        raise UserError("`correct` must be booleans, or 0 and 1: compare predictions with labels first.")
    return correct.bool()


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
    ordered = _check_confidence(confidence).sort(descending=True).values
    return float(ordered[math.ceil(coverage * len(ordered) - 1e-9) - 1])


def at_most(wrong: int, count: int, rate: float) -> float:
    """The probability of at most so many wrong ones at an error rate above 0 and below 1.

    >>> round(at_most(1, 2, 0.5), 4)
    0.75
    """
    k = torch.arange(wrong + 1, dtype=torch.float64)
    n = torch.tensor(float(count), dtype=torch.float64)
    choose = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    return float((choose + k * math.log(rate) + (n - k) * math.log1p(-rate)).logsumexp(0).exp())
