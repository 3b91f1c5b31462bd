"""Temperature scaling (Guo et al., 2017): one number, fitted on held-out data, that corrects confidences."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.errors import UserError
from dign.metrics.base import Metric, check_fit, outside_classes

PRIOR = 0.25
"""The `prior` of the temperatures that models are given after training."""
LOWEST, HIGHEST = 0.05, 20.0
"""The range of temperatures. A model that is right on all of its validation data would want 0."""
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class TemperatureFit:
    """A fitted temperature.

    Attributes:
        value: The temperature.
        images: Number of images it was fitted on.
        nll_before: Their mean log loss without it.
        nll_after: Their mean log loss with it.
    """

    value: float
    images: int
    nll_before: float
    nll_after: float


class Temperature(Metric[TemperatureFit]):
    """The temperature T that minimizes the mean log loss of softmax(z / T).

        T = argmin_T  -1/N sum_n log softmax(z_n / T)_(y_n),   0.05 <= T <= 20

    The loss is convex in 1/T, so it has one minimum in log T, which golden-section search narrows down to 1e-7.

    Shapes: scores z (N,C), logits or log-probabilities; labels y (N,). The state is all scores that were added.

    >>> metric = Temperature()
    >>> metric.update(torch.tensor([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]), torch.tensor([0, 0, 0, 1]))
    >>> round(metric.compute().value, 3)  # three of four are right: softmax(2/T) = 3/4, T = 2 / log(3)
    1.82
    """

    def _empty_state(self) -> dict[str, Tensor]:
        return {"scores": torch.empty(0, 0), "labels": torch.empty(0, dtype=torch.int64)}

    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Add a batch.

        Args:
            scores: Logits or log-probabilities (N,C).
            labels: Class indices (N,).
        """
        self._check_shapes(scores, labels)
        labels = labels.to(scores.device)
        self._check_values(outside_classes(labels, scores))
        self._append(scores.detach(), labels)

    def merge(self, other: Temperature) -> Temperature:
        """Add another metric's scores; returns self."""
        theirs = other.state()
        self._append(theirs["scores"], theirs["labels"])
        self._add(invalid=theirs["invalid"])
        return self

    def _append(self, scores: Tensor, labels: Tensor) -> None:
        known = [self._state["scores"]] if len(self._state["labels"]) else []
        if known and known[0].shape[1] != scores.shape[1] and len(scores):
            raise UserError(f"Temperature: scores of {scores.shape[1]} classes after {known[0].shape[1]}.")
        if len(scores):
            self._state["scores"] = torch.cat([*known, scores.to(self.device)])
            self._state["labels"] = torch.cat([self._state["labels"], labels.to(self.device)])

    def compute(self) -> TemperatureFit:
        """The temperature, and the log losses without and with it.

        Raises:
            UserError: No predictions were added.
        """
        state = self._final_state()
        return fit_temperature(state["scores"], state["labels"])


def fit_temperature(scores: Tensor, labels: Tensor, prior: float | None = None) -> TemperatureFit:
    """Fit a temperature in one call: see `Temperature`.

    Args:
        scores: Logits or log-probabilities (N,C).
        labels: Class indices (N,).
        prior: The standard deviation that log T is expected to have about 0 before anything is measured: (log T)^2 /
            (2 prior^2) is added to the sum of the losses, so that few images move T little, and none of them wrong
            does not make the model infinitely sure. None for no prior.

    Returns:
        The temperature, and the log losses without and with it.

    Raises:
        UserError: There are no images, or a shape or a value is wrong.

    >>> fit_temperature(torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])).images
    4
    """
    scores, labels = check_fit("A temperature", scores, labels)
    doubles, labels = scores.double(), labels.long()

    def loss(log_temperature: float) -> float:
        return functional.cross_entropy(doubles / math.exp(log_temperature), labels).item()

    def penalized(log_temperature: float) -> float:
        penalty = 0.0 if prior is None else (log_temperature / prior) ** 2 / 2
        return loss(log_temperature) + penalty / len(labels)

    best = _find_minimum(penalized, math.log(LOWEST), math.log(HIGHEST))
    return TemperatureFit(math.exp(best), len(labels), loss(0.0), loss(best))


def apply_temperature(probabilities: Tensor, temperature: float) -> Tensor:
    """softmax(log p / T): the probabilities (N,C) that logits divided by T would have given.

    The order of the classes stays, so accuracy does too.

    Args:
        probabilities: (N,C).
        temperature: T, above 0; above 1 makes the model less confident.

    Returns:
        Probabilities (N,C).

    >>> apply_temperature(torch.tensor([[0.9, 0.1]]), 2.0)  # 0.9 ** 0.5 : 0.1 ** 0.5 = 3 : 1
    tensor([[0.7500, 0.2500]])
    """
    if not temperature > 0:
        raise UserError(f"temperature must be above 0, not {temperature}.")
    return torch.softmax(log_probabilities(probabilities) / temperature, dim=-1)


def log_probabilities(probabilities: Tensor) -> Tensor:
    """Logarithms, of the smallest normal number where a probability has underflowed to 0."""
    return probabilities.clamp(min=torch.finfo(probabilities.dtype).tiny).log()


def _find_minimum(loss: Callable[[float], float], low: float, high: float, width: float = 1e-7) -> float:
    """Where a function with one minimum has it, by golden section: each step keeps 0.618 of the interval."""
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
