"""Accuracy and calibration of predicted probabilities, batch by batch and in constant memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.placement import place_for_float64
from dign.metrics.base import Metric, measure, outside_classes
from dign.metrics.confidences import PROBABILITIES, is_improper

_ROUNDING = 1e-9
"""A variance below this share of the mean square is what rounding leaves of confidences that are all the same."""


@dataclass(frozen=True)
class CalibrationScores:
    """What `Calibration` computes.

    Attributes:
        count: Number of predictions.
        accuracy: Percentage of predictions that are right.
        ece: Expected calibration error, in percent.
        rmse: Root mean square calibration error, in percent.
        oe: Overconfidence error, in percent.
        sharpness: 1 / standard deviation of the confidence inside a bin; None where that is zero.
    """

    count: int
    accuracy: float
    ece: float
    rmse: float
    oe: float
    sharpness: float | None


class Calibration(Metric[CalibrationScores]):
    """Accuracy and calibration over equal-width bins of the confidence.

    The confidence of a prediction is its largest probability. Bins are right-closed, (low, high], so a confidence of
    1.0 belongs to the last one. With acc_i and conf_i the accuracy and the mean confidence in bin i, Var_i the
    variance of the confidence in it, and w_i the fraction of predictions in it (section IV of the paper)::

        RMSE = sqrt(sum_i w_i (acc_i - conf_i)^2)        ECE = sum_i w_i |acc_i - conf_i|
        OE = sum_i w_i conf_i max(conf_i - acc_i, 0)     SH = 1 / sqrt(sum_i w_i Var_i)

    Shapes: probabilities (N,C), labels (N,); the state is five tensors of `bins` numbers at most. Sums of confidence
        are kept about each bin's midpoint in float64, so that the variance inside a bin keeps its digits however many
        predictions there are. On the CPU the sums are made in the order of the batches, and come out the same to the
        last bit.

    Args:
        bins: Number of bins.

    >>> calibration = Calibration(bins=16)
    >>> calibration.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    >>> scores = calibration.compute()
    >>> scores.accuracy, round(scores.ece, 4)  # |1 - 0.9| / 2 + |0 - 0.8| / 2
    (50.0, 45.0)
    """

    PROBLEMS = (*Metric.PROBLEMS, PROBABILITIES)
    SETTINGS = ("bins",)

    def __init__(self, bins: int = 16) -> None:
        if bins < 1:
            raise UserError(f"bins must be at least 1, not {bins}.")
        self.bins = bins
        super().__init__()

    def _empty_state(self) -> dict[str, Tensor]:
        types = {"counts": torch.int64, "correct": torch.int64, "deviation": torch.float64, "square": torch.float64}
        return {name: torch.zeros(self.bins, dtype=dtype) for name, dtype in types.items()}

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[int, ...]:
        return (len(state["counts"]),)

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            probabilities: (N,C), each row in [0,1].
            labels: Class indices (N,).

        Raises:
            UserError: The shapes are wrong; or, on the CPU, a value is (elsewhere `compute` raises it).
        """
        self._check_shapes(probabilities, labels)
        probabilities = probabilities.to(place_for_float64(probabilities.device))
        labels = labels.to(probabilities.device)
        confidence, predicted = probabilities.detach().max(dim=1)
        confidence = confidence.double()
        self._check_values(outside_classes(labels, probabilities), is_improper(probabilities))
        confidence = confidence.clamp(max=1.0)
        index = (confidence * self.bins).ceil().long().sub(1).clamp(0, self.bins - 1)
        deviation = confidence - (index.double() + 0.5) / self.bins

        def sum_by_bin(values: Tensor) -> Tensor:
            return values.new_zeros(self.bins).index_add_(0, index, values)

        self._add(
            counts=sum_by_bin(torch.ones_like(index)),
            correct=sum_by_bin((predicted == labels).long()),
            deviation=sum_by_bin(deviation),
            square=sum_by_bin(deviation.square()),
        )

    @property
    def count(self) -> int:
        """The number of predictions so far. Waits for the device."""
        return int(self._state["counts"].sum())

    def compute(self) -> CalibrationScores:
        """The scores of all predictions so far.

        Raises:
            UserError: No predictions were added, or some had values that are not valid.
        """
        state = self._final_state()
        total = int(state["counts"].sum())
        self._refuse_none(state["counts"].sum())
        weight = state["counts"].double() / total
        counts = state["counts"].clamp(min=1).double()
        confidence = self._midpoints() + state["deviation"] / counts
        gap = confidence - state["correct"] / counts
        square = state["square"] / counts
        variance = square - (state["deviation"] / counts).square()
        variance = torch.where(variance > _ROUNDING * square, variance, 0)
        spread = float((weight * variance).sum().sqrt())
        return CalibrationScores(
            count=total,
            accuracy=100 * int(state["correct"].sum()) / total,
            ece=100 * float((weight * gap.abs()).sum()),
            rmse=100 * float((weight * gap.square()).sum().sqrt()),
            oe=100 * float((weight * confidence * gap.clamp(min=0)).sum()),
            sharpness=1 / spread if spread > 0 else None,
        )

    def expected_ece(self) -> float:
        """The ECE, in percent, that a perfectly calibrated model would have on so many predictions, by chance alone.

        In a bin of n predictions of confidence c the accuracy differs from c by sqrt(2 c (1 - c) / (pi n)) in the mean,
        and ECE is the sum of such distances: it is never 0, and larger the fewer images there are.
        """
        state = self._final_state()
        counts = state["counts"].clamp(min=1).double()
        confidence = (self._midpoints() + state["deviation"] / counts).clamp(0, 1)
        weight = state["counts"].double() / state["counts"].sum()
        return 100 * float((weight * (2 * confidence * (1 - confidence) / (math.pi * counts)).sqrt()).sum())

    def reliability(self) -> dict[str, list[float]]:
        """Per bin: `count`, mean `confidence` and `accuracy` in [0,1] (both 0 where the bin is empty)."""
        state = self._final_state()
        counts = state["counts"].clamp(min=1).double()
        confidence = torch.where(state["counts"] > 0, self._midpoints() + state["deviation"] / counts, 0)
        return {
            "count": state["counts"].tolist(),
            "confidence": confidence.tolist(),
            "accuracy": (state["correct"] / counts).tolist(),
        }

    def _midpoints(self) -> Tensor:
        return (torch.arange(self.bins, dtype=torch.float64) + 0.5) / self.bins


def calibration(probabilities: Tensor, labels: Tensor, bins: int = 16) -> CalibrationScores:
    """Accuracy and calibration in one call: see `Calibration`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).
        bins: Number of bins.

    Returns:
        The scores.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> scores = calibration(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    >>> round(scores.rmse, 2)  # sqrt((0.1^2 + 0.8^2) / 2)
    57.01
    """
    return measure(Calibration(bins), probabilities, labels)


def accuracy_intervals(calibration: Calibration, images: int | None = None) -> list[tuple[float, float] | None]:
    """The 95 % interval of the accuracy in each bin; None for an empty one.

    Args:
        calibration: What was counted.
        images: How many different images that was, where each was predicted several times. What it got under one
            corruption says little new about another, so that intervals take each image as one.
    """
    bins = calibration.reliability()
    total = sum(bins["count"])
    own = min(1.0, images / total) if images and total else 1.0
    pairs = zip(bins["accuracy"], bins["count"], strict=True)
    return [wilson_interval(accuracy, count * own) if count else None for accuracy, count in pairs]


def wilson_interval(share: float, count: float, z: float = 1.96) -> tuple[float, float]:
    """The interval of a share that was found in `count` predictions (Wilson 1927), 95 % by default.

    >>> [round(end, 3) for end in wilson_interval(0.5, 100)]
    [0.404, 0.596]
    """
    center = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    return max(center - half, 0.0), min(center + half, 1.0)
