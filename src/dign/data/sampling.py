"""The order of the training images in an epoch: each of them once, or every class equally often."""

from __future__ import annotations

import torch
from torch import Tensor

from dign.core.seeds import make_generator


def draw_order(labels: Tensor, epoch: int, *, seed: int, balance: bool = False) -> Tensor:
    """The numbers of the training images in the order of an epoch.

    Args:
        labels: The classes of the training images, (N,).
        epoch: The epoch, from 0.
        seed: The run's seed.
        balance: Draw every class equally often: images of rare classes come several times, of frequent ones some not.

    Returns:
        N numbers, int64, on the CPU; they depend on the arguments alone.

    >>> draw_order(torch.tensor([0, 0, 1]), 0, seed=0).sort().values
    tensor([0, 1, 2])
    """
    generator = make_generator(seed, "order", epoch)
    if not balance:
        return torch.randperm(len(labels), generator=generator)
    drawn = _draw_classes_equally(labels.cpu(), generator)
    return drawn[torch.randperm(len(drawn), generator=generator)]


def _draw_classes_equally(labels: Tensor, generator: torch.Generator) -> Tensor:
    """As many numbers as labels; no two classes differ by more than one, and no two images of a class either."""
    classes = labels.unique().tolist()
    share, left = divmod(len(labels), len(classes))
    luckier = set(torch.randperm(len(classes), generator=generator)[:left].tolist())
    parts = []
    for place, label in enumerate(classes):
        members = (labels == label).nonzero().flatten()
        wanted = share + (place in luckier)
        rounds = -(-wanted // len(members))
        order = torch.cat([torch.randperm(len(members), generator=generator) for _ in range(rounds)])
        parts.append(members[order[:wanted]])
    return torch.cat(parts)
