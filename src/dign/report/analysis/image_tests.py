"""Is a difference more than luck of the images? Two models on the same images, image by image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dign.evaluation.image_record import LOSSES
from dign.report.analysis.quantities import Quantity
from dign.report.analysis.study import Group
from dign.report.load import Run

RESAMPLES = 1000
BINS = 16
MEANS = ("accuracy", *LOSSES)
"""Scores that are means over images: what images differ by has a standard error, and no resampling is needed."""


@dataclass(frozen=True)
class ImageDifference:
    """First minus second over the same images.

    Attributes:
        mean: The difference.
        error: Its standard error over images.
        images: How many images.
        exact: The p-value of McNemar's exact test, where the difference is between two models on one condition.
    """

    mean: float
    error: float
    images: int
    exact: float | None = None

    @property
    def p(self) -> float:
        """Two-sided p-value: McNemar's, else by the error over images; where all differ alike, the sign test's."""
        if self.exact is not None:
            return self.exact
        if self.error < 1e-12:
            return 1.0 if abs(self.mean) < 1e-12 else 2.0 ** (1 - self.images)
        return math.erfc(abs(self.mean) / self.error / math.sqrt(2))


def mcnemar(first: np.ndarray, second: np.ndarray) -> float:
    """The two-sided p-value of McNemar's exact test for two models' right answers (N,) on the same images.

    Only images on which one of the two is right count; where the models do not differ, each is as likely to be it.

    >>> mcnemar(np.array([True] * 9 + [False]), np.array([False] * 9 + [True]))
    0.021484375
    """
    only_first, only_second = int((first & ~second).sum()), int((second & ~first).sum())
    count = only_first + only_second
    if count >= 1000:
        return _normal_mcnemar(only_first, only_second)
    tail = sum(math.comb(count, k) for k in range(min(only_first, only_second) + 1))
    return min(1.0, float(2 * tail / 2**count))


def _normal_mcnemar(only_first: int, only_second: int) -> float:
    """For a thousand and more the normal distribution is exact enough, with the correction for continuity."""
    distance = max(abs(only_first - only_second) - 1, 0)
    return math.erfc(distance / math.sqrt(only_first + only_second) / math.sqrt(2))


def compare_images(first: Group, second: Group, quantity: Quantity) -> ImageDifference | None:
    """The difference in a quantity over images, at the seeds that both groups have.

    An image counts once, with all it got under all conditions, so that conditions are not taken for independent. Scores
    that are no means over images are resampled. None where a run keeps no record of its images, or images or
    conditions are not the same, or the quantity cannot be computed from it.
    """
    if quantity.images is None:
        return None
    pairs = _common_seeds(first, second)
    tables = []
    for one, other in pairs:
        found = [_image_table(run, quantity) for run in (one, other)]
        if found[0] is None or found[1] is None or not _same_images(one, other):
            return None
        if set(quantity.images.choose(one)) != set(quantity.images.choose(other)):
            return None
        tables.append((found[0], found[1]))
    if not tables or len({len(table) for pair in tables for table in pair}) > 1:
        return None
    count = len(tables[0][0])
    score = quantity.images.score
    if score in MEANS:
        per_image = np.mean([one[:, 0] - other[:, 0] for one, other in tables], axis=0)
        error = float(per_image.std(ddof=1)) / math.sqrt(count) if count > 1 else 0.0
        exact = _exact(pairs, quantity) if len(pairs) == 1 and score == "accuracy" else None
        return ImageDifference(float(per_image.mean()), error, count, exact)
    weights = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES).astype(np.float32)
    draws = np.mean([_error(weights @ one, score) - _error(weights @ other, score) for one, other in tables], axis=0)
    whole = np.mean([_error(one.sum(0)[None], score) - _error(other.sum(0)[None], score) for one, other in tables])
    return ImageDifference(float(whole), float(draws.std(ddof=1)), count)


def keep_images(first: Group, second: Group, quantity: Quantity) -> bool:
    """Whether the runs that `compare_images` would look at keep records of their images that tell the quantity."""
    pairs = _common_seeds(first, second)
    return quantity.images is not None and bool(pairs) and all(_tells(run, quantity) for pair in pairs for run in pair)


def _tells(run: Run, quantity: Quantity) -> bool:
    """Whether the record of a run has what the quantity follows from, under whatever conditions."""
    record, score = run.results.images, quantity.images
    assert score is not None
    if record is None:
        return False
    if score.score in LOSSES:
        return score.pool in record.losses
    return not (score.raw and run.results.calibrator is not None) or record.has_raw


def _common_seeds(first: Group, second: Group) -> list[tuple[Run, Run]]:
    """Runs with the same seed; where each group has one run, these two, whatever their seeds."""
    others = {run.seed: run for run in second.runs}
    pairs = [(run, others[run.seed]) for run in first.runs if run.seed in others]
    return pairs or ([(first.runs[0], second.runs[0])] if len(first.runs) == len(second.runs) == 1 else [])


def _same_images(one: Run, other: Run) -> bool:
    digests = [run.results.evaluation.images_sha256 for run in (one, other)]
    records = [run.results.images for run in (one, other)]
    known = None not in digests
    assert records[0] is not None and records[1] is not None
    return (not known or digests[0] == digests[1]) and records[0].same_images(records[1])


def _image_table(run: Run, quantity: Quantity) -> np.ndarray | None:
    """(N,1): an image's mean over conditions, of `MEANS`; or (N, 3 bins): per bin count, right and confidence.

    None where the record does not tell.
    """
    assert quantity.images is not None
    record, score = run.results.images, quantity.images.score
    chosen: Sequence[tuple[str, int]] = quantity.images.choose(run)
    if not _tells(run, quantity) or not chosen:
        return None
    assert record is not None
    if any(pair not in record.conditions for pair in chosen):
        return None
    if score == "accuracy":
        return 100 * np.mean([record.correct(pair) for pair in chosen], axis=0)[:, None]
    if score in LOSSES:
        return record.losses[quantity.images.pool][LOSSES.index(score)].astype(np.float64)[:, None]
    before = quantity.images.raw and run.results.calibrator is not None
    rows, count = np.arange(len(record.labels)), len(record.labels)
    table = np.zeros((count, 3, BINS), dtype=np.float32)
    for pair in chosen:
        got = record.conditions[pair]
        confidence = got.raw_confidence if before else got.confidence
        assert confidence is not None
        index = np.clip(np.ceil(confidence * BINS).astype(int) - 1, 0, BINS - 1)
        for column, values in enumerate((np.ones(count), record.correct(pair), confidence)):
            np.add.at(table, (rows, column, index), values)
    return table.reshape(count, -1)


def _exact(pairs: Sequence[tuple[Run, Run]], quantity: Quantity) -> float | None:
    """McNemar's p-value, where the quantity is the accuracy under one condition."""
    (one, other) = pairs[0]
    assert quantity.images is not None
    chosen = quantity.images.choose(one)
    if len(chosen) != 1 or one.results.images is None or other.results.images is None:
        return None
    return mcnemar(one.results.images.correct(chosen[0]), other.results.images.correct(chosen[0]))


def _error(sums: np.ndarray, score: str) -> np.ndarray:
    """ECE, RMSE or OE in percent, for rows of sums per bin."""
    counts, right, confidence = np.moveaxis(sums.reshape(len(sums), 3, BINS).astype(np.float64), 1, 0)
    safe = np.maximum(counts, 1)
    share = counts / counts.sum(1, keepdims=True)
    gap = (confidence - right) / safe
    if score == "rmse":
        return 100 * np.sqrt((share * gap**2).sum(1))
    return 100 * (share * (np.abs(gap) if score == "ece" else confidence / safe * np.maximum(gap, 0))).sum(1)
