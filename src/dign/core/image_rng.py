"""Random numbers for the images of a batch: the same whether one process holds the batch or several share it.

Code that draws for images does it through the functions here. They accept an ordinary `torch.Generator`, which a user's
own loop hands in, and two kinds that also say which images a batch consists of: `SharedGenerator`, `NumberedGenerator`.
They are generators as well, because what a whole batch has in common (a random network) and what a user's function
draws comes from torch's own functions, which accept nothing else.
"""

from __future__ import annotations

from typing import Self

import torch
from torch import Tensor

from dign.core.compiled_draws import compiled_rank, define_draw
from dign.core.seeds import derive_seed, make_generator

BLOCK_SIZE = 32
"""Images of a data set whose noise comes from one generator. Changing it changes every result."""


class SharedGenerator(torch.Generator):
    """The generator of a process that holds images `rank`, `rank + world_size`, ... of a batch.

    All processes seed it alike and draw for the whole batch; each keeps the numbers of its own images. Drawing is cheap
    beside what is done with the numbers, which every process does for its own images alone.
    """

    rank: int
    world_size: int

    def __new__(cls, seed: int, device: torch.device | str, *, rank: int, world_size: int) -> Self:
        # torch.Generator is constructed by __new__, though its stub declares __init__.
        generator = super().__new__(cls, device)  # type: ignore[call-arg]
        generator.rank, generator.world_size = rank, world_size
        generator.manual_seed(seed)
        return generator


class NumberedGenerator(torch.Generator):
    """The generator for images number `first`, `first + 1`, ... of a data set.

    The noise of an image depends on its number and on how many draws came before, not on the batch it is in.
    """

    run_seed: int
    purpose: str
    first: int
    draws: int
    """How often normal noise was drawn so far."""

    def __new__(cls, run_seed: int, purpose: str, first: int, device: torch.device | str) -> Self:
        generator = super().__new__(cls, device)  # type: ignore[call-arg]
        generator.run_seed, generator.purpose, generator.first, generator.draws = run_seed, purpose, first, 0
        generator.manual_seed(derive_seed(run_seed, purpose, first))  # for draws with torch's own functions
        return generator


def make_shared_generator(
    seed: int, purpose: str, step: int, device: torch.device, rank: int, world_size: int
) -> SharedGenerator:
    """As `make_generator`, for process `rank` of `world_size`."""
    return SharedGenerator(derive_seed(seed, purpose, step), device, rank=rank, world_size=world_size)


def make_placed_generator(seed: int, purpose: str, first: int, device: torch.device | str) -> torch.Generator:
    """As `make_generator`, for the images of a data set from number `first` on."""
    return NumberedGenerator(seed, purpose, first, device)


def global_batch_size(count: int, generator: torch.Generator | None) -> int:
    """The number of images in the batch of which this process holds `count`; all processes hold equally many."""
    return count * _rank(generator)[1]


def local_count(count: int, generator: torch.Generator | None) -> int:
    """How many of the first `count` images of the whole batch this process holds: its own first ones."""
    rank, world_size = _rank(generator)
    return len(range(rank, count, world_size))


def _rank(generator: torch.Generator | None) -> tuple[int, int]:
    """Rank and world size of this process. Compiled code is not handed the generator that it draws from."""
    if torch.compiler.is_compiling():
        return compiled_rank()
    return (generator.rank, generator.world_size) if isinstance(generator, SharedGenerator) else (0, 1)


def local_slice(drawn: Tensor, generator: torch.Generator | None, images: int = 0) -> Tensor:
    """Of numbers drawn for a whole batch, those of this process's images; axis `images` of `drawn` is the images'."""
    if not isinstance(generator, SharedGenerator):
        return drawn
    return drawn[(slice(None),) * images + (slice(generator.rank, None, generator.world_size),)]


def uniform(
    *shape: int,
    generator: torch.Generator | None,
    device: torch.device,
    dtype: torch.dtype | None = None,
    images: int = 0,
    batch: int | None = None,
) -> Tensor:
    """`torch.rand(shape)`, where axis `images` of `shape` runs over this process's images.

    `batch` is the number of images in all processes, needed where they do not hold equally many.
    """
    if torch.compiler.is_compiling():
        like = torch.empty(0, device=device, dtype=dtype)
        drawn: Tensor = _compiled_uniform(like, list(shape), images, batch)
        return drawn
    if isinstance(generator, NumberedGenerator) and images == 0:
        like = torch.empty(shape, device=device, dtype=dtype)
        placed: Tensor = torch.special.ndtr(normal_like(like, generator))
        return placed.clamp(max=1 - torch.finfo(like.dtype).eps)
    size = list(shape)
    size[images] = global_batch_size(size[images], generator) if batch is None else batch
    return local_slice(torch.rand(size, generator=generator, device=device, dtype=dtype), generator, images)


def draw_shared(x: Tensor, generator: torch.Generator | None) -> Tensor:
    """One number in [0,1), of the type and device of x, that all images of a batch share: the same in all processes."""
    if torch.compiler.is_compiling():
        drawn: Tensor = _compiled_shared(x)
        return drawn
    return torch.rand((), generator=generator, device=x.device, dtype=x.dtype)


def image_noise(x: Tensor, *, first: int, seed: int, purpose: str, draw: int) -> Tensor:
    """Standard normal noise of the shape of x (N,...), whose images are numbers first..first+N-1 of a data set.

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
    if torch.compiler.is_compiling():
        drawn: Tensor = _compiled_normal(x.detach())
        return drawn
    if isinstance(generator, NumberedGenerator):
        draw, generator.draws = generator.draws, generator.draws + 1
        return image_noise(x, first=generator.first, seed=generator.run_seed, purpose=generator.purpose, draw=draw)
    size = (global_batch_size(len(x), generator), *x.shape[1:])
    return local_slice(torch.randn(size, generator=generator, device=x.device, dtype=x.dtype), generator)


def _draw_uniform(
    like: Tensor, shape: list[int], images: int, batch: int | None, *, generator: torch.Generator | None
) -> Tensor:
    return uniform(*shape, generator=generator, device=like.device, dtype=like.dtype, images=images, batch=batch)


_compiled_uniform = define_draw(
    "uniform(Tensor like, SymInt[] shape, int images, SymInt? batch) -> Tensor",
    _draw_uniform,
    lambda like, shape, images, batch: like.new_empty(shape),
)
_compiled_normal = define_draw("normal_like(Tensor x) -> Tensor", normal_like, lambda x: x.new_empty(x.shape))
_compiled_shared = define_draw(
    "draw_shared(Tensor x) -> Tensor",
    lambda x, generator: draw_shared(x, generator),
    lambda x: x.new_empty(()),
)
