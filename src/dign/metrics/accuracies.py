"""Top-1 accuracy, over images and over classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import Metric, measure, outside_classes


class Accuracy(Metric[float]):
    """The percentage of predictions whose largest score is that of the label.

        accuracy = 100/N sum_n [argmax_c s_nc = y_n]

    Shapes: scores s (N,C), logits or probabilities; labels y (N,).

    >>> metric = Accuracy()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    >>> metric.compute()
    50.0
    """

    def _empty_state(self) -> dict[str, Tensor]:
        return {"correct": torch.zeros((), dtype=torch.int64), "count": torch.zeros((), dtype=torch.int64)}

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            scores: Logits or probabilities (N,C).
            labels: Class indices (N,).
        """
        self._check_shapes(scores, labels)
        labels = labels.to(scores.device)
        self._check_values(outside_classes(labels, scores))
        self._add(
            correct=(scores.argmax(dim=1) == labels).sum(), count=torch.full((), len(labels), device=scores.device)
        )

    def compute(self) -> float:
        """Accuracy in percent.

        Raises:
            UserError: No predictions were added.
        """
        state = self._final_state()
        self._refuse_none(state["count"])
        return 100 * int(state["correct"]) / int(state["count"])


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """Top-1 accuracy in one call: see `Accuracy`.

    Args:
        scores: Logits or probabilities (N,C).
        labels: Class indices (N,).

    Returns:
        Accuracy in percent.

    Raises:
        UserError: The shapes or the labels are wrong, or there are no predictions.

    >>> accuracy(torch.tensor([[2.0, -1.0], [0.0, 3.0]]), torch.tensor([0, 1]))
    100.0
    """
    return measure(Accuracy(), scores, labels)


class BalancedAccuracy(Metric[float]):
    """The mean over classes of the percentage of a class's images that are predicted right.

        balanced accuracy = 100/|C'| sum_{c in C'} K_cc / sum_j K_cj,   C' the classes that have images

    with K the confusion matrix. Where all classes have equally many images it is the accuracy; a model that never
    answers a rare class loses as much by it as by a frequent one.

    Shapes: scores s (N,C), logits or probabilities; labels y (N,).

    Args:
        classes: Number of classes C.

    >>> metric = BalancedAccuracy(2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]]), torch.tensor([0, 0, 1]))
    >>> metric.compute()
    50.0
    """

    SETTINGS = ("classes",)

    def __init__(self, classes: int) -> None:
        self.classes = classes
        super().__init__()

    def _empty_state(self) -> dict[str, Tensor]:
        return {name: torch.zeros(self.classes, dtype=torch.int64) for name in ("correct", "count")}

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[int, ...]:
        return (len(state["count"]),)

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            scores: Logits or probabilities (N,C).
            labels: Class indices (N,).
        """
        self._check_shapes(scores, labels)
        if scores.shape[1] != self.classes:
            raise UserError(f"BalancedAccuracy counts {self.classes} classes, but the scores have {scores.shape[1]}.")
        labels = labels.to(scores.device)
        self._check_values(outside_classes(labels, scores))
        place = labels.long().clamp(0, self.classes - 1)  # on a GPU, compute() refuses those outside
        right = (scores.detach().argmax(dim=1) == labels).long()
        empty = place.new_zeros(self.classes)
        self._add(correct=empty.scatter_add(0, place, right), count=empty.scatter_add(0, place, torch.ones_like(place)))

    def compute(self) -> float:
        """Balanced accuracy in percent.

        Raises:
            UserError: No predictions were added.
        """
        state = self._final_state()
        present = state["count"] > 0
        self._refuse_none(present.any())
        return 100 * float((state["correct"][present] / state["count"][present].double()).mean())


def balanced_accuracy(scores: Tensor, labels: Tensor) -> float:
    """Balanced accuracy in one call: see `BalancedAccuracy`.

    Args:
        scores: Logits or probabilities (N,C).
        labels: Class indices (N,).

    Returns:
        The mean over classes of the accuracy on their images, in percent.

    Raises:
        UserError: The shapes or the labels are wrong, or there are no predictions.

    >>> balanced_accuracy(torch.tensor([[2.0, -1.0], [1.0, 0.0], [0.5, 0.0]]), torch.tensor([0, 0, 1]))
    50.0
    """
    return measure(BalancedAccuracy(scores.shape[-1] if scores.dim() else 1), scores, labels)
