"""Histogram binning (Zadrozny and Elkan, 2001): the probability of a class is replaced by how often it was right."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.metrics.base import check_fit


@dataclass(frozen=True)
class HistogramBinning:
    """A step function for every class, from its probability to how often it was right; then all add up to 1 again.

    Attributes:
        edges: (C,bins-1), upper edges of all bins of a class but the last.
        values: (C,bins).

    >>> halves = HistogramBinning(((0.5,), (0.5,)), ((0.2, 0.8), (0.2, 0.8)))
    >>> halves(torch.tensor([[0.9, 0.1]]).log()).exp()
    tensor([[0.8000, 0.2000]])
    """

    edges: tuple[tuple[float, ...], ...]
    values: tuple[tuple[float, ...], ...]

    def __call__(self, scores: Tensor) -> Tensor:
        """Log-probabilities (N,C) after binning those of logits or log-probabilities (N,C)."""
        p = scores.double().softmax(-1)
        edges = torch.tensor(self.edges, dtype=torch.float64, device=p.device)
        values = torch.tensor(self.values, dtype=torch.float64, device=p.device)
        index = (p[:, :, None] > edges).sum(2)  # plain comparisons and one gather, which every exporter knows
        first = torch.arange(values.shape[0], device=p.device) * values.shape[1]
        chosen = values.flatten()[index + first]
        return (chosen / chosen.sum(1, keepdim=True)).log().to(scores.dtype)


def fit_histogram_binning(scores: Tensor, labels: Tensor, bins: int = 16) -> HistogramBinning:
    """Fit histogram binning on held-out predictions.

    Bins hold as many images each. The value of a bin counts one more image than it holds, of its mean probability: a
    bin in which a class never was right gets a small probability, not 0. The answers may change.

    Args:
        scores: Logits or log-probabilities (N,C).
        labels: Class indices (N,).
        bins: Number of bins for every class; fewer where there are fewer images.

    Returns:
        The step functions.

    Raises:
        UserError: There are no images, or a shape or a value is wrong.

    >>> fit = fit_histogram_binning(torch.tensor([[2.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]), bins=1)
    >>> round(fit.values[0][0], 3)  # (3 + 0.881) / 5
    0.776
    """
    if bins < 1:
        raise UserError(f"bins must be at least 1, not {bins}.")
    scores, labels = check_fit("Histogram binning", scores, labels)
    p = scores.detach().double().softmax(1)
    hits = (labels[:, None] == torch.arange(p.shape[1])).double()
    bins = min(bins, len(labels))
    cuts = torch.arange(bins + 1) * len(labels) // bins
    edges, values = [], []
    for column, hit in zip(p.T.contiguous(), hits.T, strict=True):
        ordered, order = column.sort()
        inner = cuts[1:-1]
        edges.append(tuple(((ordered[inner - 1] + ordered[inner]) / 2).tolist()))
        index = torch.bucketize(column, torch.tensor(edges[-1], dtype=torch.float64)) if len(inner) else order * 0
        counts = torch.zeros(bins, dtype=torch.float64).index_add_(0, index, torch.ones_like(column))
        mean = torch.zeros(bins, dtype=torch.float64).index_add_(0, index, column) / counts.clamp(min=1)
        right = torch.zeros(bins, dtype=torch.float64).index_add_(0, index, hit)
        middle = torch.tensor([0.0, *edges[-1], 1.0], dtype=torch.float64)
        mean = torch.where(counts > 0, mean, (middle[:-1] + middle[1:]) / 2)
        values.append(tuple(((right + mean) / (counts + 1)).clamp(min=1e-12).tolist()))
    return HistogramBinning(tuple(edges), tuple(values))
