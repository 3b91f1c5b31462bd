"""Temperature scaling (Guo et al., 2017): one number, fitted on validation data, that makes confidences honest."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.errors import UserError

LOWEST, HIGHEST = 0.05, 20.0
"""Temperatures that are considered. A model that is right on all of its validation data would want 0."""
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Temperature:
    """The fitted value, the number of images it was fitted on, and their mean log loss without and with it."""

    value: float
    images: int
    nll_before: float
    nll_after: float


def tempered(probabilities: Tensor, temperature: float) -> Tensor:
    """softmax(log p / T): the probabilities (N,C) that logits divided by T would have given.

    The order of the classes stays, so accuracy does too.

    >>> tempered(torch.tensor([[0.9, 0.1]]), 2.0)  # 0.9 ** 0.5 : 0.1 ** 0.5 = 3 : 1
    tensor([[0.7500, 0.2500]])
    """
    return torch.softmax(log_of(probabilities) / temperature, dim=-1)


def log_of(probabilities: Tensor) -> Tensor:
    """Logarithms, of the smallest normal number where a probability has underflowed to 0."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()


def fit_temperature(log_probabilities: Tensor, labels: Tensor) -> Temperature:
    """The temperature that minimizes the mean log loss of softmax(z / T), z being log probabilities or logits (N,C).

    The loss is convex in 1/T, so it has one valley in log T, which golden-section search narrows down to 1e-7.
    """
    if len(labels) == 0:
        raise UserError(
            "A temperature is fitted on validation images, and there are none: train with --validation 0.1."
        )
    scores = log_probabilities.double()

    def loss(log_temperature: float) -> float:
        return functional.cross_entropy(scores / math.exp(log_temperature), labels).item()

    best = _lowest_point(loss, math.log(LOWEST), math.log(HIGHEST))
    return Temperature(math.exp(best), len(labels), loss(0.0), loss(best))


def _lowest_point(loss: Callable[[float], float], low: float, high: float, width: float = 1e-7) -> float:
    """Where a function with one valley is lowest, by golden section: each step keeps 0.618 of the interval."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > width:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = loss(right)
    return (low + high) / 2
