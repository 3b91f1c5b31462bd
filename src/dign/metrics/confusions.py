"""Which classes are taken for which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import Metric, measure, outside_classes


class Confusion(Metric[Tensor]):
    """The confusion matrix: how often an image of one class is predicted to be of another.

        K_ij = sum_n [y_n = i] [argmax_c s_nc = j]

    Row i is the true class and column j the predicted one, so that K_ii / sum_j K_ij is the accuracy on class i.

    Shapes: scores s (N,C), logits or probabilities; labels y (N,); the state and the result are (C,C), int64.

    Args:
        classes: Number of classes C.

    >>> metric = Confusion(2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    >>> metric.compute()
    tensor([[1, 1],
            [0, 0]])
    """

    SETTINGS = ("classes",)

    def __init__(self, classes: int) -> None:
        if classes < 1:
            raise UserError(f"classes must be at least 1, not {classes}.")
        self.classes = classes
        super().__init__()

    def _empty_state(self) -> dict[str, Tensor]:
        return {"counts": torch.zeros(self.classes, self.classes, dtype=torch.int64)}

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[int, ...]:
        return (len(state["counts"]),)

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            scores: Logits or probabilities (N,C).
            labels: Class indices (N,).

        Raises:
            UserError: The shapes are wrong; or, on the CPU, a label is (elsewhere `compute` raises it).
        """
        self._check_shapes(scores, labels)
        if scores.shape[1] != self.classes:
            raise UserError(f"Confusion counts {self.classes} classes, but the scores have {scores.shape[1]}.")
        labels = labels.to(scores.device)
        self._check_values(outside_classes(labels, scores))
        rows = labels.long().clamp(0, self.classes - 1)  # on a GPU, compute() refuses those outside
        place = rows * self.classes + scores.detach().argmax(dim=1)
        counts = place.new_zeros(self.classes**2).scatter_add_(0, place, torch.ones_like(place))
        self._add(counts=counts.view(self.classes, self.classes))

    def compute(self) -> Tensor:
        """The counts (C,C), int64, on the CPU; rows are true classes.

        Raises:
            UserError: No predictions were added, or some had labels outside the classes.
        """
        counts = self._final_state()["counts"]
        self._refuse_none(counts.sum())
        return counts.clone()


def confusion(probabilities: Tensor, labels: Tensor) -> Tensor:
    """The confusion matrix in one call: see `Confusion`.

    Args:
        probabilities: Probabilities or logits (N,C).
        labels: Class indices (N,).

    Returns:
        Counts (C,C), int64; rows are true classes.

    Raises:
        UserError: The shapes or the labels are wrong, or there are no predictions.

    >>> confusion(torch.tensor([[2.0, -1.0], [0.0, 3.0]]), torch.tensor([0, 1]))
    tensor([[1, 0],
            [0, 1]])
    """
    return measure(Confusion(probabilities.shape[-1] if probabilities.dim() else 1), probabilities, labels)
