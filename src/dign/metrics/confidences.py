"""What metrics of the confidence have in common: a state of one confidence per image, and whether it was right."""

from __future__ import annotations

from typing import Self, TypeVar

import torch
from torch import Tensor

from dign.metrics.base import Metric, outside_classes

Value = TypeVar("Value")
PROBABILITIES = "probabilities must be numbers in [0,1]: apply softmax to logits first."
DISTRIBUTIONS = "probabilities must be numbers in [0,1] that add up to 1 in each row: apply softmax to logits first."
_SUM = 0.01
"""How far a row's sum may be from 1: bfloat16 rounds by up to 0.004."""


class Confidences(Metric[Value]):
    """A metric of the confidences (largest probabilities) and of which predictions are right.

    Unlike a metric of fixed bins it has to sort the confidences, so its state is one number and one bit for every
    image: `merge` appends them.
    """

    PROBLEMS = (*Metric.PROBLEMS, PROBABILITIES)

    def _empty_state(self) -> dict[str, Tensor]:
        return {"confidence": torch.empty(0, dtype=torch.float64), "correct": torch.empty(0, dtype=torch.bool)}

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            probabilities: (N,C), each row in [0,1].
            labels: Class indices (N,).

        Raises:
            UserError: The shapes are wrong; or, on the CPU, a value is (elsewhere `compute` raises it).
        """
        self._check_shapes(probabilities, labels)
        labels = labels.to(probabilities.device)
        confidence, predicted = probabilities.detach().max(dim=1)
        self._check_values(outside_classes(labels, probabilities), is_improper(probabilities))
        self._append(confidence.double().clamp(max=1.0), predicted == labels)

    def merge(self, other: Self) -> Self:
        """Add another metric's images, as if its batches had been added here; returns self."""
        self._check_settings(other)
        theirs = other.state()
        self._append(theirs["confidence"], theirs["correct"])
        self._add(invalid=theirs["invalid"])
        return self

    def _append(self, confidence: Tensor, correct: Tensor) -> None:
        for name, values in (("confidence", confidence), ("correct", correct)):
            self._state[name] = torch.cat([self._state[name], values.to(self.device)])

    def _images(self) -> tuple[Tensor, Tensor]:
        """All confidences (N,) and which are right (N,), on the CPU.

        Raises:
            UserError: There are none, or some are not valid.
        """
        state = self._final_state()
        self._refuse_none(len(state["confidence"]))
        return state["confidence"], state["correct"]


def is_improper(probabilities: Tensor) -> Tensor:
    """Which rows of (N,C) have a value that is not a probability."""
    low, high = probabilities.detach().aminmax(dim=1)
    return ~((low >= 0) & (high <= 1 + 1e-5))


def is_not_distribution(probabilities: Tensor) -> Tensor:
    """Which rows of (N,C) are not probabilities that add up to 1.

    >>> is_not_distribution(torch.tensor([[0.9, 0.1], [0.9, 0.9], [1.5, -0.5]]))
    tensor([False,  True,  True])
    """
    sums = probabilities.detach().sum(dim=1, dtype=torch.float32)
    return is_improper(probabilities) | ((sums - 1).abs() > _SUM)


def rank_by_confidence(confidence: Tensor, correct: Tensor) -> tuple[Tensor, Tensor]:
    """Confidences, the highest first, and how often each is right, float64.

    Images with the same confidence cannot be told apart, so each gets their share of right ones: a sum of these is the
    mean over all orders of such images, and does not depend on the order of the data. What is not linear in them, such
    as the distance or square of a bin, is not that mean.

    >>> confidence, right = rank_by_confidence(torch.tensor([0.5, 0.9, 0.5]), torch.tensor([True, True, False]))
    >>> right.tolist()
    [1.0, 0.5, 0.5]
    """
    ordered, order = confidence.double().sort(descending=True)
    _, group, sizes = ordered.unique_consecutive(return_inverse=True, return_counts=True)
    right = torch.zeros(len(sizes), dtype=torch.float64).index_add_(0, group, correct[order].double())
    return ordered, (right / sizes)[group]
