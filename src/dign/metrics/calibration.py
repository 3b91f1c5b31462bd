"""Accuracy and calibration of predicted probabilities, streaming and in constant memory."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from dign.core.errors import UserError

_ROUNDING = 1e-9
"""A variance below this share of the mean square is what rounding leaves of confidences that are all the same."""


@dataclass(frozen=True)
class CalibrationScores:
    """accuracy, ece, rmse and oe in percent; sharpness is 1/standard deviation (None where that is zero)."""

    count: int
    accuracy: float
    ece: float
    rmse: float
    oe: float
    sharpness: float | None

    def as_dict(self) -> dict[str, float | int | None]:
        return asdict(self)


class Calibration:
    """Counts of confidence and correctness in equal-width bins, from which all scores follow.

    Bins are right-closed, (low, high], so a confidence of 1.0 belongs to the last one. With acc, conf and Var
    of the confidences in bin i, and w_i the fraction of predictions in it (section IV of the paper):

        RMSE = sqrt(sum_i w_i (acc_i - conf_i)^2)        ECE = sum_i w_i |acc_i - conf_i|
        OE = sum_i w_i conf_i max(conf_i - acc_i, 0)     SH = 1 / sqrt(sum_i w_i Var_i)

    Sums of confidence are kept about each bin's midpoint in float64, so that the variance inside a bin keeps
    its digits however many predictions there are.

    >>> calibration = Calibration(bins=16)
    >>> calibration.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    >>> scores = calibration.compute()
    >>> scores.accuracy, round(scores.ece, 4)  # |1 - 0.9| / 2 + |0 - 0.8| / 2
    (50.0, 45.0)
    """

    def __init__(self, bins: int = 16) -> None:
        if bins < 1:
            raise UserError(f"Calibration needs at least one bin, not {bins}.")
        self.bins = bins
        self._counts = torch.zeros(bins, dtype=torch.int64)
        self._correct = torch.zeros(bins, dtype=torch.int64)
        self._deviation = torch.zeros(bins, dtype=torch.float64)
        self._square = torch.zeros(bins, dtype=torch.float64)

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Count a batch: probabilities (N,C) and class indices (N,)."""
        if probabilities.dim() != 2 or labels.shape != probabilities.shape[:1]:
            raise UserError(
                f"Calibration takes probabilities (N,C) and labels (N,), "
                f"not {tuple(probabilities.shape)} and {tuple(labels.shape)}."
            )
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < probabilities.shape[1]:
            raise UserError(f"A label lies outside 0..{probabilities.shape[1] - 1}, the classes of the probabilities.")
        confidence, predicted = probabilities.detach().max(dim=1)
        confidence = confidence.double()
        if len(labels) and not bool(((confidence >= 0) & (confidence <= 1 + 1e-5)).all()):
            raise UserError("Probabilities must lie in [0,1] and be numbers: apply softmax to logits first.")
        confidence = confidence.clamp(max=1.0)
        index = (confidence * self.bins).ceil().long().sub(1).clamp(0, self.bins - 1)
        deviation = confidence - (index.double() + 0.5) / self.bins

        def add(total: Tensor, values: Tensor) -> Tensor:
            return total + torch.bincount(index, weights=values, minlength=self.bins).to(total)

        self._counts = add(self._counts, torch.ones_like(confidence))
        self._correct = add(self._correct, (predicted == labels).double())
        self._deviation = add(self._deviation, deviation)
        self._square = add(self._square, deviation.square())

    def merge(self, other: Calibration) -> Calibration:
        """Add another's counts to these, as if its predictions had been seen here; returns self."""
        if other.bins != self.bins:
            raise UserError(f"Cannot merge calibration over {other.bins} bins into one over {self.bins}.")
        self._counts = self._counts + other._counts
        self._correct = self._correct + other._correct
        self._deviation = self._deviation + other._deviation
        self._square = self._square + other._square
        return self

    @property
    def count(self) -> int:
        """The predictions seen so far."""
        return int(self._counts.sum())

    def compute(self) -> CalibrationScores:
        total = self.count
        if total == 0:
            raise UserError("No predictions were counted: call update() before compute().")
        weight = self._counts.double() / total
        counts = self._counts.clamp(min=1).double()
        confidence = self._midpoints() + self._deviation / counts
        gap = confidence - self._correct / counts
        square = self._square / counts
        variance = square - (self._deviation / counts).square()
        variance = torch.where(variance > _ROUNDING * square, variance, 0)
        spread = float((weight * variance).sum().sqrt())
        return CalibrationScores(
            count=total,
            accuracy=100 * int(self._correct.sum()) / total,
            ece=100 * float((weight * gap.abs()).sum()),
            rmse=100 * float((weight * gap.square()).sum().sqrt()),
            oe=100 * float((weight * confidence * gap.clamp(min=0)).sum()),
            sharpness=1 / spread if spread > 0 else None,
        )

    def reliability(self) -> dict[str, list[float]]:
        """Per bin: `count`, mean `confidence` and `accuracy` in [0,1] (both 0 where the bin is empty)."""
        counts = self._counts.clamp(min=1).double()
        confidence = torch.where(self._counts > 0, self._midpoints() + self._deviation / counts, 0)
        return {
            "count": self._counts.tolist(),
            "confidence": confidence.tolist(),
            "accuracy": (self._correct / counts).tolist(),
        }

    def _midpoints(self) -> Tensor:
        return (torch.arange(self.bins, dtype=torch.float64) + 0.5) / self.bins

    def state(self) -> dict[str, list[float]]:
        """The counts as plain lists, for a results file; `from_state` takes them back exactly."""
        return {
            "counts": self._counts.tolist(),
            "correct": self._correct.tolist(),
            "deviation": self._deviation.tolist(),
            "square": self._square.tolist(),
        }

    @classmethod
    def from_state(cls, state: dict[str, list[float]]) -> Calibration:
        calibration = cls(len(state["counts"]))
        calibration._counts = torch.tensor(state["counts"], dtype=torch.int64)
        calibration._correct = torch.tensor(state["correct"], dtype=torch.int64)
        calibration._deviation = torch.tensor(state["deviation"], dtype=torch.float64)
        calibration._square = torch.tensor(state["square"], dtype=torch.float64)
        return calibration
