"""Labels of a batch: a class for each image, or several classes where images were mixed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dign.augment.pairs import partners
from dign.core.divergences import at_least_float32


@dataclass(frozen=True)
class MixedLabels:
    """The classes of images that are mixtures of others.

    Attributes:
        classes: Class indices (N,K).
        shares: How much of each image belongs to each of its classes (N,K); a row adds up to one.

    >>> mixed = mix_labels(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([1.0, 0.75]))
    >>> mixed.classes.tolist(), mixed.shares.tolist()
    ([[0, 1], [1, 0]], [[1.0, 0.0], [0.75, 0.25]])
    """

    classes: Tensor
    shares: Tensor

    @property
    def shape(self) -> torch.Size:
        """That of labels that are not mixed, (N,)."""
        return self.classes.shape[:1]

    def flatten(self) -> MixedLabels:
        """Themselves: they are not labels of pixels."""
        return self

    def to(self, device: torch.device) -> MixedLabels:
        """The same labels on a device."""
        return MixedLabels(self.classes.to(device), self.shares.to(device))


Labels = Tensor | MixedLabels
"""Class indices (N,), (N,H,W) for segmentation, or those of mixed images."""


def mix_labels(y: Labels, partners: Labels, share: Tensor) -> MixedLabels:
    """The labels of images that are `share` (N,) of one and 1 - `share` of another; mixtures may be mixed again.

    >>> twice = mix_labels(mix_labels(torch.tensor([0]), torch.tensor([1]), torch.tensor([0.5])), torch.tensor([2]),
    ...                    torch.tensor([0.5]))
    >>> twice.classes.tolist(), twice.shares.tolist()
    ([[0, 1, 2]], [[0.25, 0.25, 0.5]])
    """
    first, second = _mixed(y, share), _mixed(partners, share)
    classes = torch.cat((first.classes, second.classes), dim=1)
    shares = torch.cat((first.shares * share[:, None], second.shares * (1 - share)[:, None]), dim=1)
    return MixedLabels(classes, shares)


def mix_with_partners(y: Labels, share: Tensor) -> MixedLabels:
    """The labels of images that are `share` (N,) of themselves and 1 - `share` of their `partners`.

    >>> mix_with_partners(torch.tensor([3, 7]), torch.tensor([0.5, 1.0])).classes.tolist()
    [[3, 7], [7, 3]]
    """
    if isinstance(y, MixedLabels):
        return mix_labels(y, MixedLabels(partners(y.classes), partners(y.shares)), share)
    return mix_labels(y, partners(y), share)


def cross_entropy(logits: Tensor, y: Labels, *, label_smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
    """The cross-entropy of logits (N,C), in float32 at least: with mixed labels that of each class, by its share.

    Args:
        logits: Logits (N,C).
        y: The labels.
        label_smoothing: Label smoothing.
        reduction: "mean" over the images, or "none": one number for each.

    >>> y = mix_labels(torch.tensor([0]), torch.tensor([1]), torch.tensor([0.75]))
    >>> cross_entropy(torch.tensor([[0.0, 0.0]]), y)
    tensor(0.6931)
    """
    logits = at_least_float32(logits)
    if not isinstance(y, MixedLabels):
        return functional.cross_entropy(logits, y, label_smoothing=label_smoothing, reduction=reduction)
    each = [
        shares * functional.cross_entropy(logits, classes, label_smoothing=label_smoothing, reduction="none")
        for classes, shares in zip(y.classes.unbind(1), y.shares.unbind(1), strict=True)
    ]
    total = torch.stack(each).sum(0)
    return total.mean() if reduction == "mean" else total


def _mixed(y: Labels, share: Tensor) -> MixedLabels:
    return y if isinstance(y, MixedLabels) else MixedLabels(y[:, None], torch.ones_like(share)[:, None])
