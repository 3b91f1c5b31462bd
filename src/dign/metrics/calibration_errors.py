"""Calibration errors without fixed bins: bins of equal mass, with the bias removed, and smoothed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import measure
from dign.metrics.confidences import Confidences

GRID = 4096
"""Points on which `smooth_ece` convolves; a confidence is shared out between its two neighbors."""


class _Binned(Confidences[float]):
    """A calibration error over bins that hold the same number of images.

    Images with the same confidence share a bin: cut apart, they would count as several estimates of one accuracy. An
    edge inside such a group moves to its upper end, and bins that are then empty are left out.

    Args:
        bins: Number of bins; with fewer images there are as many bins as images.
    """

    SETTINGS = ("bins",)

    def __init__(self, bins: int = 16) -> None:
        if bins < 1:
            raise UserError(f"bins must be at least 1, not {bins}.")
        self.bins = bins
        super().__init__()

    def state(self) -> dict[str, Tensor]:
        return {**super().state(), "bins": torch.tensor(self.bins, device=self.device)}

    @classmethod
    def _arguments(cls, state: Mapping[str, Tensor | Sequence[float]]) -> tuple[Any, ...]:
        return (int(torch.as_tensor(state["bins"])),) if "bins" in state else ()

    def _bins(self) -> tuple[Tensor, Tensor, Tensor]:
        """Count, mean confidence and accuracy of each bin."""
        confidence, correct = self._images()
        ordered, order = confidence.double().sort(descending=True)
        edges = _equal_mass_edges(ordered, self.bins)
        counts = edges.diff().double()

        def means(values: Tensor) -> Tensor:
            sums = torch.cat([values.new_zeros(1), values.cumsum(0)])
            return sums[edges].diff() / counts

        return counts, means(ordered), means(correct[order].double())


def _equal_mass_edges(ordered: Tensor, bins: int) -> Tensor:
    """Where bins of equal mass start in confidences (N,), the highest first, and the end N.

    >>> _equal_mass_edges(torch.tensor([0.9, 0.8, 0.8, 0.8, 0.7, 0.6]), 3)
    tensor([0, 1, 4, 6])
    >>> _equal_mass_edges(torch.full((6,), 0.9), 3)
    tensor([0, 6])
    """
    bins = min(bins, len(ordered))
    edges = torch.arange(bins + 1) * len(ordered) // bins
    starts = torch.searchsorted(-ordered, -ordered[edges[:-1]])  # of the images with the same confidence
    distinct: Tensor = torch.cat([starts, edges[-1:]]).unique()
    return distinct


class AdaptiveECE(_Binned):
    """ECE over bins of equal mass (Nixon et al. 2019), in percent.

        adaptive ECE = sum_b w_b abs(conf_b - acc_b), images sorted by confidence, bins of equal count

    Where most confidences are near 1, bins of equal width see little of them; these do. Images with the same
    confidence share a bin, so that bins may be fewer and larger.

    Shapes: probabilities (N,C), labels (N,).

    Args:
        bins: Number of bins.

    >>> metric = AdaptiveECE(bins=2)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    >>> round(metric.compute(), 4)  # (|0.9 - 1| + |0.6 - 0|) / 2
    35.0
    """

    def compute(self) -> float:
        """Adaptive ECE in percent."""
        counts, confidence, accuracy = self._bins()
        return 100 * float((counts * (confidence - accuracy).abs()).sum() / counts.sum())


class DebiasedRMSE(_Binned):
    """Root mean square calibration error without the bias of few images (Kumar, Liang and Ma 2019), in percent.

        sqrt(max(0, sum_b w_b [(conf_b - acc_b)^2 - acc_b (1 - acc_b) / (n_b - 1)])), bins of equal mass

    The plain error of a perfectly calibrated model is not 0: in a bin of n images accuracy differs from confidence by
    chance alone, by acc (1 - acc) / n in the mean square. That is taken off; bins of one image count as 0. Images with
    the same confidence share a bin, so that bins may be fewer and larger.

    Shapes: probabilities (N,C), labels (N,).

    Args:
        bins: Number of bins.

    >>> metric = DebiasedRMSE(bins=1)
    >>> metric.update(torch.tensor([[0.9, 0.1]] * 4), torch.tensor([0, 0, 1, 1]))
    >>> round(metric.compute(), 4)  # sqrt(0.4^2 - 0.25 / 3)
    27.6887
    """

    def compute(self) -> float:
        """The debiased error in percent."""
        counts, confidence, accuracy = self._bins()
        square = (confidence - accuracy).square() - accuracy * (1 - accuracy) / (counts - 1).clamp(min=1)
        total = float((counts * torch.where(counts > 1, square, 0.0)).sum() / counts.sum())
        return 100 * math.sqrt(max(total, 0.0))


class SmoothECE(Confidences[float]):
    """Smooth ECE (Blasiok and Nakkiran 2024), in percent: no bins, and a bandwidth that the data chooses.

        smECE_h = integral over t in [0,1] of abs(1/N sum_n K_h(t, c_n) (c_n - a_n)),   smECE = the h with smECE_h = h

    c is the confidence, a whether the prediction is right, K_h a Gaussian of standard deviation h reflected at 0 and 1.
    It is continuous in the predictions, which binned errors are not.

    Shapes: probabilities (N,C), labels (N,).

    >>> metric = SmoothECE()
    >>> metric.update(torch.tensor([[0.9, 0.1]] * 10), torch.tensor([0] * 6 + [1] * 4))
    >>> round(metric.compute(), 2)  # one confidence: |0.9 - 0.6|, whatever the bandwidth
    30.0
    """

    def compute(self) -> float:
        """Smooth ECE in percent."""
        confidence, correct = self._images()
        smoothed = _smoother(confidence, confidence - correct.double())
        low, high = 0.0, 1.0
        for _ in range(30):  # smECE_h falls as h grows
            middle = (low + high) / 2
            low, high = (middle, high) if smoothed(middle) > middle else (low, middle)
        return 100 * smoothed((low + high) / 2)


def _smoother(confidence: Tensor, residual: Tensor) -> Callable[[float], float]:
    """The function from h to smECE_h.

    A Gaussian that is reflected at the ends of [0,1] is diffusion between walls: in the cosine series of the residuals
    it multiplies coefficient k by exp(-(pi k h)^2 / 2).
    """
    place = confidence * GRID - 0.5
    left = place.floor()
    share = place - left
    density = torch.zeros(GRID, dtype=torch.float64)
    for index, weight in ((left, 1 - share), (left + 1, share)):
        density.index_add_(0, index.long().clamp(0, GRID - 1), weight * residual)
    series = torch.fft.rfft(torch.cat([density, density.flip(0)]) / len(confidence))
    frequency = math.pi * torch.arange(len(series), dtype=torch.float64)

    def smoothed(h: float) -> float:
        values = torch.fft.irfft(series * torch.exp(-(frequency * h).square() / 2), n=2 * GRID)
        return float(values[:GRID].abs().sum())

    return smoothed


def adaptive_ece(probabilities: Tensor, labels: Tensor, bins: int = 16) -> float:
    """ECE over bins of equal mass in one call: see `AdaptiveECE`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).
        bins: Number of bins.

    Returns:
        The error in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> round(adaptive_ece(torch.tensor([[0.75, 0.25]]), torch.tensor([0])), 4)
    25.0
    """
    return measure(AdaptiveECE(bins), probabilities, labels)


def debiased_rmse(probabilities: Tensor, labels: Tensor, bins: int = 16) -> float:
    """Root mean square calibration error without the bias of few images in one call: see `DebiasedRMSE`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).
        bins: Number of bins.

    Returns:
        The error in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> round(debiased_rmse(torch.tensor([[0.75, 0.25]] * 2), torch.tensor([0, 0]), bins=1), 4)
    25.0
    """
    return measure(DebiasedRMSE(bins), probabilities, labels)


def smooth_ece(probabilities: Tensor, labels: Tensor) -> float:
    """Smooth ECE in one call: see `SmoothECE`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).

    Returns:
        The error in percent.

    Raises:
        UserError: A shape or a value is wrong, or there are no predictions.

    >>> round(smooth_ece(torch.tensor([[0.75, 0.25]] * 2), torch.tensor([0, 0])), 2)
    25.0
    """
    return measure(SmoothECE(), probabilities, labels)
