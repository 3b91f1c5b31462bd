"""Proper scores: log loss and Brier score, and what the latter consists of; calibration class by class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import Metric, measure, outside_classes
from dign.metrics.confidences import DISTRIBUTIONS, is_not_distribution
from dign.metrics.temperature import log_probabilities

Value = TypeVar("Value")
SCALE = 2.0**40


def log_losses(probabilities: Tensor, labels: Tensor) -> Tensor:
    """The negative log-likelihood of each image (N,), from probabilities (N,C) and class indices (N,)."""
    return -log_probabilities(_of_labels(probabilities, labels))


def brier_losses(probabilities: Tensor, labels: Tensor) -> Tensor:
    """The Brier score of each image (N,): sum_k (p_k - [y = k])^2.

    >>> brier_losses(torch.tensor([[0.5, 0.5], [0.0, 1.0]]), torch.tensor([1, 1]))
    tensor([0.5000, 0.0000])
    """
    return probabilities.square().sum(1) - 2 * _of_labels(probabilities, labels) + 1


def _of_labels(probabilities: Tensor, labels: Tensor) -> Tensor:
    """The probability of each image's label; on a GPU, `compute` refuses labels outside of the classes."""
    rows = labels.long().clamp(0, probabilities.shape[1] - 1)
    return probabilities.gather(1, rows[:, None]).squeeze(1)


class NLL(Metric[float]):
    """The mean negative log-likelihood, or log loss, in nats.

        NLL = -1/N sum_n log p_n(y_n)

    A proper score: nothing lowers its expectation but the true probabilities. A probability of 0 counts as the
    smallest normal number of its type.

    Shapes: probabilities (N,C), labels (N,).

    >>> metric = NLL()
    >>> metric.update(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 0]))
    >>> round(metric.compute(), 4)  # (log 2 + log 4) / 2
    1.0397
    """

    PROBLEMS = (*Metric.PROBLEMS, DISTRIBUTIONS)

    def _empty_state(self) -> dict[str, Tensor]:
        return {"loss": torch.zeros((), dtype=torch.float64), "count": torch.zeros((), dtype=torch.int64)}

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add a batch: probabilities (N,C) and class indices (N,)."""
        self._check_shapes(probabilities, labels)
        labels = labels.to(probabilities.device)
        outside = outside_classes(labels, probabilities)
        self._check_values(outside, is_not_distribution(probabilities))
        loss = log_losses(probabilities.detach(), labels).double().sum()
        self._add(loss=loss, count=torch.full((), len(labels), device=probabilities.device))

    def compute(self) -> float:
        """The mean log loss.

        Raises:
            UserError: No predictions were added, or some had values that are not valid.
        """
        state = self._final_state()
        self._refuse_none(state["count"])
        return float(state["loss"]) / int(state["count"])


@dataclass(frozen=True)
class BrierScores:
    """A Brier score and its parts: `score = reliability - resolution + uncertainty + within`.

    Attributes:
        score: The Brier score, from 0 to 2; 0 is perfect.
        reliability: Mean square gap between probability and frequency: the part that calibration can remove.
        resolution: How far the frequencies of the bins differ from the base rates: more is better.
        uncertainty: The score of always predicting the base rates; a fact about the labels.
        within: What differences inside the bins add; 0 where every bin holds one probability.
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float


class ByClass(Metric[Value]):
    """A metric of the probability of every class, in equal-width bins: a state of five numbers per class and bin.

    Sums of probabilities are kept as whole multiples of 2^-40, so that they are the same in whatever order, and by
    however many processes, they are made.

    Args:
        bins: Number of bins. They are right-closed, (low, high]; the first also takes 0.
    """

    PROBLEMS = (*Metric.PROBLEMS, DISTRIBUTIONS)
    SETTINGS = ("bins",)
    SUMS = ("counts", "hits", "probability", "square", "product")
    """Per class and bin: probabilities in it, how many of them are of the label, and the sums of p, p^2 and p [y=k]."""

    def __init__(self, bins: int = 16) -> None:
        if bins < 1:
            raise UserError(f"bins must be at least 1, not {bins}.")
        self.bins = bins
        super().__init__()

    def _empty_state(self) -> dict[str, Tensor]:
        return {"sums": torch.zeros(len(self.SUMS), 0, self.bins, dtype=torch.int64)}

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[int, ...]:
        return (torch.as_tensor(state["sums"]).shape[-1],)

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add a batch: probabilities (N,C) and class indices (N,)."""
        self._check_shapes(probabilities, labels)
        labels = labels.to(probabilities.device)
        self._check_values(outside_classes(labels, probabilities), is_not_distribution(probabilities))
        classes = probabilities.shape[1]
        p = probabilities.detach().double().clamp(0, 1)
        hit = (labels[:, None] == torch.arange(classes, device=p.device)).long()
        index = (p * self.bins).ceil().long().sub(1).clamp(0, self.bins - 1)
        place = (index + self.bins * torch.arange(classes, device=p.device)).flatten()
        whole, square = (p * SCALE).round().long(), (p.square() * SCALE).round().long()

        def sum_by_bin(values: Tensor) -> Tensor:
            return whole.new_zeros(classes * self.bins).index_add_(0, place, values.flatten()).view(classes, -1)

        columns = (torch.ones_like(whole), hit, whole, square, whole * hit)
        self._add_sums(torch.stack([sum_by_bin(column) for column in columns]))

    def merge(self, other: Self) -> Self:
        """Add another metric's state, as if its batches had been added here; returns self."""
        self._check_settings(other)
        theirs = other.state()
        self._add_sums(theirs["sums"])
        self._add(invalid=theirs["invalid"])
        return self

    def _add_sums(self, sums: Tensor) -> None:
        known = self._state["sums"]
        if known.shape[1] and sums.shape[1] and known.shape[1] != sums.shape[1]:
            raise UserError(f"{type(self).__name__}: probabilities of {sums.shape[1]} classes after {known.shape[1]}.")
        if sums.shape[1]:
            self._state["sums"] = known + sums.to(self.device) if known.shape[1] else sums.to(self.device)

    def _by_class(self) -> tuple[dict[str, Tensor], int]:
        """The sums (C,bins) by name, on the CPU, and the number of images.

        Raises:
            UserError: There are none, or some are not valid.
        """
        state = self._final_state()["sums"]
        self._refuse_none(state[0].any())
        scale = torch.tensor([1.0, 1.0, SCALE, SCALE, SCALE], dtype=torch.float64)[:, None, None]
        return dict(zip(self.SUMS, state / scale, strict=True)), int(state[0, 0].sum())


class Brier(ByClass[BrierScores]):
    """The Brier score and its decomposition (Murphy 1973; the part inside the bins: Stephenson et al. 2008).

        Brier = 1/N sum_n sum_k (p_nk - [y_n = k])^2

    With, for class k and bin b of its probabilities, w the share of the images in the bin, p their mean probability,
    f how often the label is k, and r the base rate of k::

        reliability = sum_k sum_b w (p - f)^2    resolution = sum_k sum_b w (f - r)^2    uncertainty = sum_k r (1 - r)

    A proper score. Shapes: probabilities (N,C), labels (N,).

    Args:
        bins: Number of bins of the decomposition; the score itself does not depend on it.

    >>> metric = Brier()
    >>> metric.update(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([0, 0]))
    >>> metric.compute().score  # (1/4 + 1/4) / 2
    0.25
    """

    def compute(self) -> BrierScores:
        """The score and its parts."""
        sums, images = self._by_class()
        counts = sums["counts"].clamp(min=1)
        weight, mean, rate = sums["counts"] / images, sums["probability"] / counts, sums["hits"] / counts
        base = sums["hits"].sum(1, keepdim=True) / images
        score = float((sums["square"] - 2 * sums["product"] + sums["hits"]).sum()) / images
        reliability = float((weight * (mean - rate).square()).sum())
        resolution = float((weight * (rate - base).square()).sum())
        uncertainty = float((base * (1 - base)).sum())
        return BrierScores(
            score, reliability, resolution, uncertainty, score - (reliability - resolution + uncertainty)
        )


class ClasswiseECE(ByClass[float]):
    """Class-wise ECE (Kull et al. 2019): the calibration error of every class's probability, not of the largest alone.

        classwise ECE = 1/C sum_k sum_b w_kb abs(p_kb - f_kb), in percent

    with w_kb the share of images whose probability of class k is in bin b, p_kb its mean there and f_kb how often the
    label is k. The mean over many classes is small, since most probabilities are: compare it at one number of classes.

    Shapes: probabilities (N,C), labels (N,).

    Args:
        bins: Number of bins.

    >>> metric = ClasswiseECE()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
    >>> round(metric.compute(), 4)  # |0.9 - 1/2| for both classes
    40.0
    """

    def compute(self) -> float:
        """Class-wise ECE in percent."""
        sums, images = self._by_class()
        return 100 * float((sums["probability"] - sums["hits"]).abs().sum()) / images / len(sums["hits"])


def nll(probabilities: Tensor, labels: Tensor) -> float:
    """Mean negative log-likelihood in one call: see `NLL`.

    Args:
        probabilities: (N,C), each row in [0,1] with sum 1.
        labels: Class indices (N,).

    Returns:
        The mean log loss, in nats.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> round(nll(torch.tensor([[0.5, 0.5]]), torch.tensor([1])), 4)
    0.6931
    """
    return measure(NLL(), probabilities, labels)


def brier(probabilities: Tensor, labels: Tensor, bins: int = 16) -> BrierScores:
    """The Brier score with its decomposition in one call: see `Brier`.

    Args:
        probabilities: (N,C), each row in [0,1] with sum 1.
        labels: Class indices (N,).
        bins: Number of bins of the decomposition.

    Returns:
        The score and its parts.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> brier(torch.tensor([[0.5, 0.5]]), torch.tensor([1])).score
    0.5
    """
    return measure(Brier(bins), probabilities, labels)


def classwise_ece(probabilities: Tensor, labels: Tensor, bins: int = 16) -> float:
    """Class-wise ECE in one call: see `ClasswiseECE`.

    Args:
        probabilities: (N,C), each row in [0,1] with sum 1.
        labels: Class indices (N,).
        bins: Number of bins.

    Returns:
        The error in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> round(classwise_ece(torch.tensor([[0.75, 0.25]]), torch.tensor([0])), 4)
    25.0
    """
    return measure(ClasswiseECE(bins), probabilities, labels)
