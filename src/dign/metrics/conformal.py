"""Prediction sets with a promised coverage, by split conformal prediction."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dign.core.errors import UserError, unknown_name

SETS = ("threshold", "adaptive")


def conformal_scores(probabilities: Tensor, kind: str = "threshold") -> Tensor:
    """How badly each class conforms to the predictions: low for probable classes.

    Args:
        probabilities: (N,C).
        kind: "threshold": 1 - p_k (Sadinle, Lei and Wasserman 2019), the smallest sets on average; "adaptive": the sum
            of all probabilities larger than that of k (after Romano, Sesia and Candes 2020), larger sets where an
            image is hard.

    Returns:
        Scores (N,C) in [0,1].

    Raises:
        UserError: The kind is unknown.

    >>> conformal_scores(torch.tensor([[0.5, 0.2, 0.3]]), "adaptive")
    tensor([[0.0000, 0.8000, 0.5000]], dtype=torch.float64)
    """
    p = probabilities.detach().double()
    if kind == "threshold":
        return 1 - p
    if kind != "adaptive":
        raise unknown_name("kind of prediction sets", kind, SETS)
    ordered, order = p.sort(dim=1, descending=True, stable=True)
    return torch.empty_like(p).scatter_(1, order, (ordered.cumsum(1) - ordered).clamp(0, 1))


def conformal_quantile(scores: Tensor, coverage: float) -> float:
    """The score up to which classes belong to a set, so that sets hold the true class with probability `coverage`.

    It is the ceil((n + 1) coverage)-th smallest of the scores of n held-out images' true classes. For a new image that
    is exchangeable with those, P(score <= quantile) >= coverage, whatever the model.

    Args:
        scores: Scores (n,) of the true classes of held-out images.
        coverage: The promise, above 0 and below 1.

    Returns:
        The quantile; infinite, so that sets hold every class, where n is too small for the promise.

    Raises:
        UserError: There are no scores, or the coverage is not between 0 and 1.

    >>> scores = torch.arange(1.0, 10.0)
    >>> conformal_quantile(scores, 0.8), conformal_quantile(scores, 0.95)
    (8.0, inf)
    """
    if not len(scores):
        raise UserError("A promise needs held-out images with labels, and there are none.")
    if not 0 < coverage < 1:
        raise UserError(f"coverage must be between 0 and 1, as in 0.9, not {coverage}.")
    rank = math.ceil((len(scores) + 1) * coverage - 1e-9)
    return math.inf if rank > len(scores) else float(scores.double().sort().values[rank - 1])


def prediction_sets(probabilities: Tensor, quantile: float, kind: str = "threshold") -> Tensor:
    """Which classes belong to the prediction set of each image; the most probable one always does.

    Args:
        probabilities: (N,C).
        quantile: From `conformal_quantile` of scores of the same kind.
        kind: As of `conformal_scores`.

    Returns:
        (N,C), bool.

    >>> prediction_sets(torch.tensor([[0.5, 0.2, 0.3]]), 0.6, "adaptive")
    tensor([[ True, False,  True]])
    """
    inside = conformal_scores(probabilities, kind) <= quantile + 1e-7
    return inside.scatter(1, probabilities.argmax(1, keepdim=True), True)
