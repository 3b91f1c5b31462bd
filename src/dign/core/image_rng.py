"""Random numbers for the images of a batch: the same whether one process holds the batch or several share it.

Whoever draws for images does it here, with an ordinary generator, with a `SharedGenerator`, or, where the images have
numbers in a data set, with a `PlacedGenerator`. Numbers that a whole batch has in common need nothing of this: they are
drawn as usual, and come out alike in all processes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dign.core.seeds import derive_seed, make_generator

BLOCK_SIZE = 32
"""Images of a data set whose noise comes from one generator. Changing it changes every result."""


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


def global_batch_size(count: int, generator: torch.Generator | None) -> int:
    """The images in the batch of which a process holds `count`; all hold equally many."""
    return count * generator.ranks if isinstance(generator, SharedGenerator) else count


def local_count(count: int, generator: torch.Generator | None) -> int:
    """How many of the first `count` images of the whole batch are held here: the first ones here as well."""
    return len(range(generator.rank, count, generator.ranks)) if isinstance(generator, SharedGenerator) else count


def local_slice(drawn: Tensor, generator: torch.Generator | None, images: int = 0) -> Tensor:
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
    size[images] = global_batch_size(size[images], generator) if batch is None else batch
    return local_slice(torch.rand(size, generator=generator, device=device, dtype=dtype), generator, images)


class PlacedGenerator(torch.Generator):
    """The generator for images `first`, `first + 1`, ... of a data set, from which normal noise is drawn.

    What an image gets depends on its number and on how often was drawn before, not on the batch that it comes in.
    """

    run_seed: int
    purpose: str
    first: int
    draws: int


def make_placed_generator(seed: int, purpose: str, first: int, device: torch.device | str) -> torch.Generator:
    """As `make_generator`, for the images of a data set from number `first` on."""
    generator = PlacedGenerator(device=device)
    generator.run_seed, generator.purpose, generator.first, generator.draws = seed, purpose, first, 0
    return generator.manual_seed(derive_seed(seed, purpose, first))  # for whoever draws something else


def image_noise(x: Tensor, *, first: int, seed: int, purpose: str, draw: int) -> Tensor:
    """Standard normal noise of the shape of x (N,...), whose images are numbers first..first+N-1 of a whole.

    The noise of an image depends on its number, the seed, the purpose and the draw alone: a result does not change
    with the batch size that fits into memory, and two models see the same perturbations.
    """
    blocks = range(first // BLOCK_SIZE, (first + len(x) - 1) // BLOCK_SIZE + 1)
    shape = (BLOCK_SIZE, *x.shape[1:])
    generators = (make_generator(seed, f"{purpose}/{draw}", block, device=x.device) for block in blocks)
    noise = torch.cat([torch.randn(shape, generator=each, device=x.device, dtype=x.dtype) for each in generators])
    start = first - blocks[0] * BLOCK_SIZE
    return noise[start : start + len(x)]


def normal_like(x: Tensor, generator: torch.Generator | None) -> Tensor:
    """Standard normal numbers of the shape, type and device of images x (N,...)."""
    if isinstance(generator, PlacedGenerator):
        place = {"first": generator.first, "seed": generator.run_seed, "purpose": generator.purpose}
        noise = image_noise(x, draw=generator.draws, **place)
        generator.draws += 1
        return noise
    size = (global_batch_size(len(x), generator), *x.shape[1:])
    return local_slice(torch.randn(size, generator=generator, device=x.device, dtype=x.dtype), generator)
