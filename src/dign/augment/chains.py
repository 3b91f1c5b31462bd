"""AugMix's chains of random operations and their mixture, for whole batches at once."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from dign.augment.blocks import block_size, blocks
from dign.augment.geometry import rotation
from dign.augment.operations import affine, autocontrast, equalize, fourier, posterize, solarize
from dign.augment.sliding import shear_x, shear_y, translate
from dign.core.compiled_draws import define_draw
from dign.core.errors import unknown_name
from dign.core.image_rng import global_batch_size, local_slice
from dign.core.pixels import divide, to_uint8
from dign.core.placement import copy_to_device
from dign.core.seeds import host_generator

NINE = (
    "autocontrast", "equalize", "posterize", "rotate", "solarize",
    "shear-x", "shear-y", "translate-x", "translate-y",
)  # fmt: skip
"""The operations of AugMix, none of which is among the corruptions of the benchmark."""
OPERATIONS = (*NINE, "fourier")
"""All operations that a chain may be made of."""


def chains(
    x: Tensor,
    count: int,
    *,
    depth: int | None = None,
    severity: Tensor | float = 3.0,
    operations: tuple[str, ...] = NINE,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Every image at the end of `count` chains of random operations.

    Each operation is any one of `operations`, at a level drawn from U(0.1, severity) and with a random sign, as in the
    code of AugMix's authors. Images have 8 bits between operations, as in PIL.

    Args:
        x: Images (N,3,H,W) in [0,1].
        count: Chains of each image.
        depth: Operations in a chain; None draws one to three for each chain.
        severity: Bound of the levels, up to 10: one number, one per image (N,), or one per image and chain (N,count).
        operations: Names out of `OPERATIONS`.
        generator: The source of all random numbers, on the device of `x`.

    Returns:
        uint8 images (N,count,3,H,W).

    Raises:
        UserError: An operation is unknown.

    >>> chains(torch.rand(2, 3, 8, 8), 4, operations=("rotate", "solarize")).shape
    torch.Size([2, 4, 3, 8, 8])
    """
    if torch.compiler.is_compiling():
        result: Tensor = _compiled_chains(x, _each(severity, x.device), count, depth, list(operations))
        return result
    pixels = torch.empty(x.shape, device=x.device, dtype=torch.uint8)
    for part in blocks(x):
        pixels[part] = to_uint8(x[part])
    chained = pixels.new_empty(len(x), count, *x.shape[1:])
    rows = chained.flatten(0, 1)
    severities = _each(severity, x.device)
    severities = (severities[:, None] if severities.dim() == 1 else severities).expand(len(x), count)
    for step, operation, job in _draw_jobs(severities, depth, operations, generator):
        for values in zip(*(values.split(block_size(x)) for values in job), strict=True):
            few = _Job(*values)
            before = _take(rows, few.row) if step else _take(pixels, few.row // count)  # a chain has one step at least
            _put(rows, few.row, _apply(operation, before, few))
    return chained


def _each(severity: Tensor | float, device: torch.device) -> Tensor:
    if isinstance(severity, Tensor):
        return severity.to(device, torch.float32)
    return torch.full((), severity, device=device, dtype=torch.float32)


def mix(x: Tensor, chained: Tensor, weights: Tensor, share: Tensor) -> Tensor:
    """(1 - share) * x + share * sum_i weights_i * chain_i, without gradients.

    Args:
        x: Images (N,3,H,W) in [0,1].
        chained: uint8 images (N,width,3,H,W).
        weights: The chains' weights (N,width), which add up to one.
        share: The mixture's share (N,), 0 to 1.

    Returns:
        Images (N,3,H,W) in [0,1].

    >>> white = torch.full((1, 2, 3, 4, 4), 255, dtype=torch.uint8)
    >>> mix(torch.zeros(1, 3, 4, 4), white, torch.tensor([[0.3, 0.7]]), torch.tensor([0.5])).mean()
    tensor(0.5000)
    """
    scaled, own = divide(weights * share[:, None], 255), (1 - share).view(-1, 1, 1, 1)
    mixed = torch.empty_like(x, dtype=torch.promote_types(x.dtype, scaled.dtype))
    for part in blocks(x):
        block = torch.mul(x[part].detach(), own[part], out=mixed[part])
        chain = torch.empty_like(block)  # one buffer for all: fresh memory costs more than the arithmetic
        for i in range(chained.shape[1]):
            block.addcmul_(chain.copy_(chained[part, i]), scaled[part, i].view(-1, 1, 1, 1))
    return mixed.to(x.dtype)


SMALLEST_SHAPE = 0.05
"""The smallest alpha that `dirichlet` is for: of smaller ones, too often all of its float32 numbers are zero."""


def dirichlet(count: int, width: int, alpha: float, device: torch.device, generator: torch.Generator | None) -> Tensor:
    """Weights (count,width) that add up to one, from the symmetric Dirichlet distribution.

    With width 2, each column has the Beta(alpha, alpha) distribution.

    >>> bool(torch.allclose(dirichlet(5, 3, 1.0, torch.device("cpu"), None).sum(1), torch.ones(5)))
    True
    """
    if torch.compiler.is_compiling():
        weights: Tensor = _compiled_dirichlet(torch.empty(0, device=device, dtype=torch.float32), count, width, alpha)
        return weights
    size = (global_batch_size(count, generator), width)
    shape = torch.full(size, float(alpha), device=device, dtype=torch.float32)
    drawn = local_slice(torch._standard_gamma(shape, generator=generator), generator)  # torch.distributions takes none
    return drawn / drawn.sum(-1, keepdim=True)


def draw_severities(x: Tensor, views: int, *, generator: torch.Generator | None) -> Tensor:
    """A bound of the levels for each image of a batch and each of its views, drawn from 1..10: (N,views).

    >>> draw_severities(torch.zeros(5, 3, 8, 8), 2, generator=None).shape
    torch.Size([5, 2])
    """
    if torch.compiler.is_compiling():
        severities: Tensor = _compiled_severities(x, views)
        return severities
    size = (global_batch_size(len(x), generator), views)
    return local_slice(torch.randint(1, 11, size, generator=generator, device=x.device), generator)


class _Structure(NamedTuple):
    """Which operations a batch's chains consist of, on the host: A applications of an operation to a row."""

    order: Tensor
    """(A,), the place of each application in (step, image, chain): the order in which they are carried out."""
    sizes: list[int]
    """How many belong to each step and operation, or none, step by step: they add up to A."""
    waves: Tensor
    """Where "fourier" is applied, as places in (step, image, chain) of the global batch."""


class _Job(NamedTuple):
    """The part of the applications that one call carries out; all tensors have its length."""

    row: Tensor
    level: Tensor
    """0 to 10."""
    sign: Tensor
    """-1 or 1."""
    wave: Tensor
    """(A,6), numbers in [0,1) for the operation "fourier"; (A,0) where it is not in use."""


def _draw_jobs(
    severities: Tensor, depth: int | None, operations: tuple[str, ...], generator: torch.Generator | None
) -> Iterator[tuple[int, str, _Job]]:
    """What happens in the chains, as (step, operation, job), step by step; `severities` are (N,count).

    Everything is drawn for the global batch, of which a part is kept. Which operation comes where is drawn on the host,
    which has to know how many images each call gets; levels and signs are drawn on the device.
    """
    device, steps = severities.device, depth or 3
    size = (global_batch_size(len(severities), generator), severities.shape[1])
    host = host_generator(generator)
    pick = torch.rand(steps, *size, generator=host, dtype=torch.float32)
    drawn = torch.rand(2, steps, *size, generator=generator, device=device, dtype=torch.float32)
    lengths = torch.rand(size, generator=host, dtype=torch.float32) if depth is None else None
    structure = _arrange(pick, lengths, operations, generator)
    level, sign = local_slice(drawn, generator, images=2)
    level, sign = (0.1 + (severities - 0.1) * level).flatten(), _signs(sign).flatten()
    wave = torch.zeros(steps, *size, 6 if "fourier" in operations else 0, device=device, dtype=torch.float32)
    if len(structure.waves):
        values = torch.rand(len(structure.waves), 6, generator=generator, device=device, dtype=torch.float32)
        wave.view(-1, 6).index_copy_(0, copy_to_device(structure.waves, device), values)
    wave = local_slice(wave, generator, images=1).flatten(0, 2)
    order = copy_to_device(structure.order, device)
    jobs = _Job(order.remainder(max(severities.numel(), 1)), level[order], sign[order], wave[order])
    for number, job in enumerate(zip(*(values.split(structure.sizes) for values in jobs), strict=True)):
        step, kind = divmod(number, len(OPERATIONS) + 1)
        operation = (None, *OPERATIONS)[kind]
        if operation and structure.sizes[number]:
            yield step, operation, _Job(*job)


def _arrange(
    pick: Tensor, lengths: Tensor | None, operations: tuple[str, ...], generator: torch.Generator | None
) -> _Structure:
    """The operations that numbers in [0,1) stand for: `pick` (step, image, chain), `lengths` (image, chain)."""
    known = torch.tensor([_index(name) for name in operations])
    operation = known[(pick * len(known)).long().clamp_(max=len(known) - 1)]
    step = torch.arange(len(pick))[:, None, None]
    if lengths is not None:
        operation = torch.where(step < 1 + (3 * lengths).long(), operation, -1)
    waves = (operation == OPERATIONS.index("fourier")).flatten().nonzero().flatten()
    operation = local_slice(operation, generator, images=1) + 1  # 0: none
    kinds = len(OPERATIONS) + 1
    key = (step * kinds + operation).flatten()
    sizes = torch.bincount(key, minlength=len(pick) * kinds).tolist()
    return _Structure(key.argsort(), sizes, waves)


def _signs(drawn: Tensor) -> Tensor:
    """-1 or 1 for numbers in [0,1), in their type."""
    return torch.ones_like(drawn).masked_fill_(drawn < 0.5, -1)


def _index(name: str) -> int:
    if name not in OPERATIONS:
        raise unknown_name("operation", name, OPERATIONS)
    return OPERATIONS.index(name)


def _apply(operation: str, images: Tensor, job: _Job) -> Tensor:
    """An operation at the job's levels, which are scaled as AugMix's authors do."""
    level, sign = job.level, job.sign
    height, width = images.shape[-2:]
    if operation == "autocontrast":
        return autocontrast(images)
    if operation == "equalize":
        return equalize(images)
    if operation == "posterize":
        return posterize(images, (4 - _whole(level, 4)).clamp(min=1))  # PIL takes no fewer bits
    if operation == "solarize":
        return solarize(images, (256 - _whole(level, 256)).clamp(min=1))
    if operation == "rotate":
        return affine(images, rotation(sign * _whole(level, 30)))
    if operation == "shear-x":
        return shear_x(images, sign * level * 0.03)
    if operation == "shear-y":
        return shear_y(images, sign * level * 0.03)
    if operation == "translate-x":
        return translate(images, sign * _whole(level, width / 3), torch.zeros_like(level))
    if operation == "translate-y":
        return translate(images, torch.zeros_like(level), sign * _whole(level, height / 3))
    return _wave(images, level, job.wave)


def _whole(level: Tensor, largest: float) -> Tensor:
    """The level's share of the largest value, cut down to a whole number."""
    return (level * (largest / 10)).floor()


def _wave(images: Tensor, level: Tensor, draw: Tensor) -> Tensor:
    """A wave of any frequency up to half a cycle per pixel, at most as strong as 0.125 (root mean square)."""
    halves = [size // 2 for size in images.shape[-2:]]
    frequencies = torch.stack([(draw[:, i] * (2 * half + 1)).floor() - half for i, half in enumerate(halves)], dim=1)
    return fourier(images, 0.0125 * level, frequencies, 2 * math.pi * draw[:, 2], _signs(draw[:, 3:]))


def _take(rows: Tensor, index: Tensor) -> Tensor:
    return _wide(rows).index_select(0, index).view(torch.uint8).view(-1, *rows.shape[1:])


def _put(rows: Tensor, index: Tensor, images: Tensor) -> None:
    _wide(rows).index_copy_(0, index, _wide(images))


def _wide(images: Tensor) -> Tensor:
    """The same bytes as rows of 8-byte numbers where they divide so: torch moves those several times as fast.

    Complex numbers, because it writes them twice as fast as whole ones.
    """
    rows = images.flatten(1)
    return rows.view(torch.complex64) if rows.shape[1] % 8 == 0 else rows


def _draw_chains(
    x: Tensor,
    severity: Tensor,
    count: int,
    depth: int | None,
    operations: list[str],
    *,
    generator: torch.Generator | None,
) -> Tensor:
    return chains(x, count, depth=depth, severity=severity, operations=tuple(operations), generator=generator)


def _draw_dirichlet(like: Tensor, count: int, width: int, alpha: float, *, generator: torch.Generator | None) -> Tensor:
    return dirichlet(count, width, alpha, like.device, generator)


_compiled_chains = define_draw(
    "chains(Tensor x, Tensor severity, int count, int? depth, str[] operations) -> Tensor",
    _draw_chains,
    lambda x, severity, count, depth, operations: x.new_empty(len(x), count, *x.shape[1:], dtype=torch.uint8),
)
_compiled_dirichlet = define_draw(
    "dirichlet(Tensor like, SymInt count, int width, float alpha) -> Tensor",
    _draw_dirichlet,
    lambda like, count, width, alpha: like.new_empty(count, width),
)
_compiled_severities = define_draw(
    "draw_severities(Tensor x, int views) -> Tensor",
    lambda x, views, generator: draw_severities(x, views, generator=generator),
    lambda x, views: x.new_empty(len(x), views, dtype=torch.int64),
)
