"""Vector scaling (Guo et al., 2017): a factor and an offset for every class, fitted on held-out data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dign.metrics.base import check_fit
from dign.metrics.temperature import PRIOR


@dataclass(frozen=True)
class VectorScaling:
    """softmax(factor * log p + offset), class by class.

    Attributes:
        factor: (C,), what every class's log-probability is multiplied by.
        offset: (C,), what is then added.

    >>> VectorScaling((1.0, 1.0), (0.0, 0.0))(torch.tensor([[0.0, 0.0]]))
    tensor([[-0.6931, -0.6931]])
    """

    factor: tuple[float, ...]
    offset: tuple[float, ...]

    def __call__(self, scores: Tensor) -> Tensor:
        """Log-probabilities (N,C) after scaling those of logits or log-probabilities (N,C)."""
        factor, offset = scores.new_tensor(self.factor), scores.new_tensor(self.offset)
        return (scores.log_softmax(-1) * factor + offset).log_softmax(-1)


def fit_vector_scaling(scores: Tensor, labels: Tensor, prior: float | None = PRIOR) -> VectorScaling:
    """Fit vector scaling by the log loss of held-out predictions.

    Twice as many numbers as classes are fitted, so it wants many more images than a temperature; it can correct a
    model that is too sure of some classes alone. The answers may change.

    Args:
        scores: Logits or log-probabilities (N,C).
        labels: Class indices (N,).
        prior: The standard deviation that offsets and log factors are expected to have about 0; None for none.

    Returns:
        The scaling.

    Raises:
        UserError: There are no images, or a shape or a value is wrong.

    >>> fit = fit_vector_scaling(torch.tensor([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), torch.tensor([0, 1, 1]))
    >>> fit.offset[0] < fit.offset[1]  # class 0 is predicted too often
    True
    """
    scores, labels = check_fit("Vector scaling", scores, labels)
    log_p, labels = scores.detach().double().log_softmax(1), labels.long()
    parameters = torch.zeros(2, scores.shape[1], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([parameters], max_iter=200, line_search_fn="strong_wolfe", tolerance_grad=1e-9)

    def loss() -> Tensor:
        optimizer.zero_grad()
        value = functional.cross_entropy(log_p * parameters[0].exp() + parameters[1], labels)
        if prior is not None:
            value = value + parameters.square().sum() / (2 * prior**2 * len(labels))
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(loss)
    log_factor, offset = parameters.detach()
    return VectorScaling(tuple(log_factor.exp().tolist()), tuple(offset.tolist()))
