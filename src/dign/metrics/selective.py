"""Selective prediction: how right a model is on the images that it is most confident about."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import measure
from dign.metrics.confidences import Confidences, rank_by_confidence


class AURC(Confidences[float]):
    """Area under the risk-coverage curve (Geifman, Uziel and El-Yaniv 2019), in percent; less is better.

        AURC = 1/N sum_k (wrong ones among the k most confident) / k

    Shapes: probabilities (N,C), labels (N,).

    >>> metric = AURC()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    >>> metric.compute()  # (0/1 + 1/2) / 2
    25.0
    """

    def compute(self) -> float:
        """AURC in percent."""
        errors = _count_errors(*self._images())
        return 100 * float((errors / torch.arange(1, len(errors) + 1)).mean())


class AUGRC(Confidences[float]):
    """Area under the generalized risk-coverage curve (Traub et al. 2024), in percent; less is better.

        AUGRC = 1/N sum_k (wrong ones among the k most confident) / N

    The mean risk of an undetected error over all coverages. Unlike AURC it is not ruled by the few most confident.

    Shapes: probabilities (N,C), labels (N,).

    >>> metric = AUGRC()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    >>> metric.compute()  # (0/2 + 1/2) / 2
    25.0
    """

    def compute(self) -> float:
        """AUGRC in percent."""
        errors = _count_errors(*self._images())
        return 100 * float(errors.mean()) / len(errors)


class AccuracyAtCoverage(Confidences[float]):
    """Accuracy, in percent, on the most confident share of the images.

    Shapes: probabilities (N,C), labels (N,).

    Args:
        coverage: The share of images that are answered, above 0 and at most 1.

    >>> metric = AccuracyAtCoverage(0.5)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    >>> metric.compute()
    100.0
    """

    SETTINGS = ("coverage",)

    def __init__(self, coverage: float = 0.8) -> None:
        if not 0 < coverage <= 1:
            raise UserError(f"coverage must be above 0 and at most 1, not {coverage}.")
        self.coverage = coverage
        super().__init__()

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "coverage": torch.tensor(self.coverage, dtype=torch.float64, device=self.device)}

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[Any, ...]:
        return (float(torch.as_tensor(state["coverage"], dtype=torch.float64)),) if "coverage" in state else ()

    def compute(self) -> float:
        """Accuracy in percent on the `coverage` of the images with the highest confidence."""
        return _accuracy_at(_count_errors(*self._images()), self.coverage)


def risk_coverage(confidence: Tensor, correct: Tensor, points: int = 100) -> tuple[list[float], list[float]]:
    """The risk-coverage curve at `points` evenly spaced coverages.

    Args:
        confidence: (N,).
        correct: Which predictions are right (N,).
        points: Number of points; fewer where there are fewer images.

    Returns:
        Coverages above 0 and up to 1, and the error among the so many most confident images, both as fractions.

    >>> risk_coverage(torch.tensor([0.9, 0.6]), torch.tensor([True, False]))
    ([0.5, 1.0], [0.0, 0.5])
    """
    errors = _count_errors(confidence, correct)
    points = min(points, len(errors))
    accepted = [math.ceil(len(errors) * step / points) for step in range(1, points + 1)]
    return [k / len(errors) for k in accepted], [float(errors[k - 1]) / k for k in accepted]


def _count_errors(confidence: Tensor, correct: Tensor) -> Tensor:
    """How many of the k most confident are wrong, for k = 1..N, in float64."""
    return (1 - rank_by_confidence(confidence, correct)[1]).cumsum(0)


def _accuracy_at(errors: Tensor, coverage: float) -> float:
    accepted = max(1, math.ceil(coverage * len(errors) - 1e-9))
    return 100 * (1 - float(errors[accepted - 1]) / accepted)


def aurc(probabilities: Tensor, labels: Tensor) -> float:
    """Area under the risk-coverage curve in one call: see `AURC`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).

    Returns:
        The area in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> aurc(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([1, 0]))  # (1/1 + 1/2) / 2
    75.0
    """
    return measure(AURC(), probabilities, labels)


def augrc(probabilities: Tensor, labels: Tensor) -> float:
    """Area under the generalized risk-coverage curve in one call: see `AUGRC`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).

    Returns:
        The area in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> augrc(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([1, 0]))  # (1/2 + 1/2) / 2
    50.0
    """
    return measure(AUGRC(), probabilities, labels)


def accuracy_at_coverage(probabilities: Tensor, labels: Tensor, coverage: float = 0.8) -> float:
    """Accuracy on the most confident share of the images in one call: see `AccuracyAtCoverage`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).
        coverage: The share of images that are answered.

    Returns:
        Accuracy in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> accuracy_at_coverage(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]), 1.0)
    50.0
    """
    return measure(AccuracyAtCoverage(coverage), probabilities, labels)
