"""Random numbers for the images of a batch: the same whether one process holds the batch or several share it.

Whoever draws for images does it here, with an ordinary generator or with a `SharedGenerator`. Numbers that a whole
batch has in common need nothing of this: they are drawn as usual, and come out alike in all processes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dign.seeds import derive_seed


class SharedGenerator(torch.Generator):
    """The generator of a process that holds images `rank`, `rank + ranks`, ... of a batch.

    All processes seed it alike and draw for the whole batch, of which each keeps the numbers of its own images. To
    draw is cheap beside what is done with the numbers, which every process does for its own images alone.
    """

    rank: int
    ranks: int


def make_shared_generator(
    seed: int, purpose: str, step: int, device: torch.device, rank: int, ranks: int
) -> torch.Generator:
    """As `make_generator`, for process `rank` of `ranks`."""
    generator = SharedGenerator(device=device)
    generator.rank, generator.ranks = rank, ranks
    return generator.manual_seed(derive_seed(seed, purpose, step))


def whole(count: int, generator: torch.Generator | None) -> int:
    """The images in the batch of which a process holds `count`; all hold equally many."""
    return count * generator.ranks if isinstance(generator, SharedGenerator) else count


def held(count: int, generator: torch.Generator | None) -> int:
    """How many of the first `count` images of the whole batch are held here: the first ones here as well."""
    return len(range(generator.rank, count, generator.ranks)) if isinstance(generator, SharedGenerator) else count


def own(drawn: Tensor, generator: torch.Generator | None, images: int = 0) -> Tensor:
    """Of numbers for a whole batch, those of the images held here; axis `images` of `drawn` runs over images."""
    if not isinstance(generator, SharedGenerator):
        return drawn
    return drawn[(slice(None),) * images + (slice(generator.rank, None, generator.ranks),)]


def uniform(
    *shape: int,
    generator: torch.Generator | None,
    device: torch.device,
    dtype: torch.dtype | None = None,
    images: int = 0,
    batch: int | None = None,
) -> Tensor:
    """`torch.rand(shape)`, whose axis `images` runs over the images held here.

    `batch` is the number of images in all processes, where they do not hold equally many.
    """
    size = list(shape)
    size[images] = whole(size[images], generator) if batch is None else batch
    return own(torch.rand(size, generator=generator, device=device, dtype=dtype), generator, images)


def normal_like(x: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal numbers of the shape, type and device of images x (N,...)."""
    size = (whole(len(x), generator), *x.shape[1:])
    return own(torch.randn(size, generator=generator, device=x.device, dtype=x.dtype), generator)
