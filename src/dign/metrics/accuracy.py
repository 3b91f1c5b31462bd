"""Top-1 accuracy."""

from __future__ import annotations

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import Metric, outside_classes


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
        if not int(state["count"]):
            raise UserError("No predictions were counted: call update() before compute().")
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
    metric = Accuracy()
    metric.update(scores, labels)
    return metric.compute()
