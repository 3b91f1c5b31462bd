"""What all metrics have in common: a state of a few tensors, to which batches are added."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.placement import place_for_float64

Value = TypeVar("Value")


class Metric(ABC, Generic[Value]):
    """A metric of predictions, gathered batch by batch.

    `update` never waits for the device: the batch is reduced where it is and added to a state of fixed size. So that
    the state is there as well, move the metric once with `to(device)`; a metric on the CPU takes batches of any
    device, but then waits for each of them. Values that are not valid (labels outside the classes, for example) are
    refused at once on the CPU; on other devices they are counted, and `compute` raises the error.

    States of several processes are gathered as plain tensors (`state`), restored with `from_state` and added with
    `merge`.
    """

    PROBLEMS: tuple[str, ...] = ("labels must be class indices 0..C-1 for scores of shape (N,C).",)
    """What can be wrong with the values of a batch, each as an error message."""
    SETTINGS: tuple[str, ...] = ()
    """Attributes, such as a number of bins, that metrics must share to be merged."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")
        self.reset()

    @abstractmethod
    def update(self, scores: Tensor, labels: Tensor) -> None:
        """Add a batch: scores (N,C) and class indices (N,)."""

    @abstractmethod
    def compute(self) -> Value:
        """The metric over everything that was added."""

    @abstractmethod
    def _empty_state(self) -> dict[str, Tensor]: ...

    def reset(self) -> None:
        """Forget everything that was added."""
        invalid = torch.zeros(len(self.PROBLEMS), dtype=torch.int64)
        self._state = {
            name: value.to(self.device) for name, value in (self._empty_state() | {"invalid": invalid}).items()
        }

    def merge(self, other: Self) -> Self:
        """Add another metric's state, as if its batches had been added here; returns self."""
        self._check_settings(other)
        theirs = other.state()
        if any(theirs[name].shape != value.shape for name, value in self._state.items()):
            raise UserError(f"Cannot merge a {type(self).__name__} with a state of another shape.")
        self._state = {name: value + theirs[name].to(self.device) for name, value in self._state.items()}
        return self

    def to(self, device: torch.device | str) -> Self:
        """Move the state to a device; returns self. One in float64, which Apple's GPUs lack, stays on the CPU there."""
        exact = any(value.dtype == torch.float64 for value in self._state.values())
        self.device = place_for_float64(device) if exact else torch.device(device)
        self._state = {name: value.to(self.device) for name, value in self._state.items()}
        return self

    def state(self) -> dict[str, Tensor]:
        """The state as plain tensors, to be stored or gathered; `from_state` restores it exactly."""
        return {name: value.clone() for name, value in self._state.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Tensor | Sequence[float]]) -> Self:
        """A metric on the CPU with a state that `state` gave, as tensors or lists of numbers."""
        metric = cls(*cls._arguments(state))
        metric._restore(state)
        return metric

    def _restore(self, state: Mapping[str, Tensor | Sequence[float]]) -> None:
        for name, empty in self._state.items():
            value = state.get(name, empty)
            self._state[name] = (
                value.cpu().clone() if isinstance(value, Tensor) else torch.tensor(value, dtype=empty.dtype)
            )

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[Any, ...]:
        """What the metric of a state is made with, such as its number of classes."""
        return ()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self._state, other._state
        if any(getattr(self, name) != getattr(other, name) for name in self.SETTINGS):
            return False
        return all(torch.equal(value.cpu(), theirs[name].cpu()) for name, value in mine.items())

    __hash__ = None  # type: ignore[assignment]  # it changes with every update

    def _check_settings(self, other: Self) -> None:
        for name in self.SETTINGS:
            mine, theirs = getattr(self, name), getattr(other, name, None)
            if mine != theirs:
                raise UserError(
                    f"Cannot merge a {type(self).__name__} of {name}={mine} with one of {name}={theirs}: make "
                    f"both with the same {name}."
                )

    def _add(self, **batch: Tensor) -> None:
        for name, value in batch.items():
            self._state[name] = self._state[name] + value.to(self.device)

    def _check_shapes(self, scores: Tensor, labels: Tensor) -> None:
        name = type(self).__name__
        if not isinstance(scores, Tensor) or not isinstance(labels, Tensor):
            raise UserError(
                f"{name} takes tensors, not {type(scores).__name__} and {type(labels).__name__}: see torch.as_tensor."
            )
        if scores.dim() != 2 or not scores.shape[1] or labels.shape != scores.shape[:1]:
            raise UserError(
                f"{name} takes scores (N,C) and labels (N,), not {tuple(scores.shape)} and {tuple(labels.shape)}."
            )
        if not scores.is_floating_point() or labels.is_floating_point():
            raise UserError(
                f"{name} takes floating-point scores and whole-numbered labels, not {scores.dtype} and {labels.dtype}."
            )

    def _check_values(self, *wrong: Tensor) -> None:
        """One boolean tensor for each of `PROBLEMS`: raise on the CPU, count elsewhere."""
        counts = torch.stack([each.sum() for each in wrong])
        if counts.device.type == "cpu":
            self._refuse(counts)
        else:
            self._add(invalid=counts)

    def _refuse(self, invalid: Tensor) -> None:
        for problem, count in zip(self.PROBLEMS, invalid.tolist(), strict=True):
            if count:
                raise UserError(f"{type(self).__name__}: {problem}")

    def _refuse_none(self, count: Tensor | int) -> None:
        if not int(count):
            raise UserError("No predictions were counted: call update() before compute().")

    def _final_state(self) -> dict[str, Tensor]:
        """The state on the CPU, once it is known to be valid and not empty."""
        state: dict[str, Any] = {name: value.cpu() for name, value in self._state.items()}
        self._refuse(state["invalid"])
        return state


def outside_classes(labels: Tensor, scores: Tensor) -> Tensor:
    """Which labels (N,) are not among the classes of scores (N,C)."""
    return (labels < 0) | (labels >= scores.shape[1])


def check_fit(fitted: str, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Refuse what a calibrator cannot be fitted on.

    Args:
        fitted: What is fitted, as the start of a sentence.
        scores: Should be finite logits or log-probabilities (N,C), a tensor or a NumPy array.
        labels: Should be class indices (N,), likewise.

    Returns:
        Scores and labels as tensors.

    Raises:
        UserError: A type, a shape or a value is wrong, or there are no images.
    """
    if not all(isinstance(given, Tensor | np.ndarray) for given in (scores, labels)):
        kinds = type(scores).__name__, type(labels).__name__
        raise UserError(f"{fitted} is fitted on tensors or arrays, not {kinds[0]} and {kinds[1]}: see torch.as_tensor.")
    scores, labels = torch.as_tensor(scores), torch.as_tensor(labels)
    if not labels.numel():
        raise UserError(f"{fitted} is fitted on images with labels, and there are none.")
    if scores.dim() != 2 or labels.shape != scores.shape[:1] or labels.is_floating_point():
        raise UserError(
            f"{fitted} is fitted on scores (N,C) and class indices (N,), not {tuple(scores.shape)} and "
            f"{labels.dtype} {tuple(labels.shape)}."
        )
    if not bool(scores.isfinite().all()):
        raise UserError(
            f"{fitted} is fitted on finite scores, and some are NaN or infinite: check the model's outputs."
        )
    if bool(outside_classes(labels, scores).any()):
        raise UserError(f"labels go beyond the {scores.shape[1]} classes that the scores are for.")
    return scores, labels


def measure(metric: Metric[Value], scores: Tensor, labels: Tensor) -> Value:
    """A metric of one batch, of tensors or of what makes one, such as NumPy arrays."""
    metric.update(torch.as_tensor(scores), torch.as_tensor(labels))
    return metric.compute()
