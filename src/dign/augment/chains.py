"""AugMix's chains of random operations and their mixture, for whole batches at once."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from dign.augment import geometry
from dign.augment.operations import affine, autocontrast, equalize, fourier, posterize, solarize, translate
from dign.core.errors import unknown_name
from dign.core.image_rng import global_batch_size, local_slice
from dign.core.pixels import divide, to_uint8

NINE = (
    "autocontrast", "equalize", "posterize", "rotate", "solarize",
    "shear-x", "shear-y", "translate-x", "translate-y",
)  # fmt: skip
"""The operations of AugMix, none of which is among the corruptions of the benchmark."""
OPERATIONS = (*NINE, "fourier")
"""All operations that a chain may be made of."""

_GROUP_OF = {name: name.split("-")[0] for name in OPERATIONS} | {"rotate": "bend", "shear-x": "bend", "shear-y": "bend"}
_GROUPS = ("nothing", *sorted(set(_GROUP_OF.values())))
"""Operations that are carried out by the same call."""


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
    levels = to_uint8(x)
    # A copy for each chain, whatever the layout of the batch: the copies are written to.
    rows = levels[:, None].expand(-1, count, -1, -1, -1).contiguous().flatten(0, 1)
    severities = torch.as_tensor(severity, device=x.device, dtype=torch.float32)
    severities = (severities[:, None] if severities.dim() == 1 else severities).expand(len(x), count)
    plan = _draw_plan(severities, depth, operations, generator)
    for group, job in _jobs(plan, x.shape[-2:]):
        _put(rows, job.row, _apply(group, _take(rows, job.row), job))
    return rows.view(len(x), count, *x.shape[1:])


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
    mixed = x * (1 - share).view(-1, 1, 1, 1)
    scaled = divide(weights * share[:, None], 255)
    chain = torch.empty_like(x)  # one buffer for all: fresh memory costs more than the arithmetic
    for i in range(chained.shape[1]):
        mixed.addcmul_(chain.copy_(chained[:, i]), scaled[:, i].view(-1, 1, 1, 1))
    return mixed.to(x.dtype)  # the weights are float32


def dirichlet(count: int, width: int, alpha: float, device: torch.device, generator: torch.Generator | None) -> Tensor:
    """Weights (count,width) that add up to one, from the symmetric Dirichlet distribution.

    With width 2, each column has the Beta(alpha, alpha) distribution.

    >>> dirichlet(5, 3, 1.0, torch.device("cpu"), None).sum(1)
    tensor([1.0000, 1.0000, 1.0000, 1.0000, 1.0000])
    """
    size = (global_batch_size(count, generator), width)
    shape = torch.full(size, float(alpha), device=device, dtype=torch.float32)
    drawn = local_slice(torch._standard_gamma(shape, generator=generator), generator)  # torch.distributions takes none
    return drawn / drawn.sum(-1, keepdim=True)


class _Plan(NamedTuple):
    """A applications of an operation to a row; all tensors are (A,)."""

    row: Tensor
    step: Tensor
    operation: Tensor
    """Index into OPERATIONS, or -1: nothing."""
    level: Tensor
    """0 to 10."""
    sign: Tensor
    wave: Tensor
    """(A,6), numbers in [0,1) for the operation "fourier"; (A,0) where it is not asked for."""


class _Job(NamedTuple):
    """The part of a plan that one call carries out: A applications again."""

    row: Tensor
    level: Tensor
    matrix: Tensor
    """(A,2,3), for the geometric operations."""
    wave: Tensor
    """(A,6), for "fourier"."""


def _draw_plan(
    severities: Tensor, depth: int | None, operations: tuple[str, ...], generator: torch.Generator | None
) -> _Plan:
    """What happens in the chains, with `severities` (N,count): drawn for the global batch, of which a part is kept."""
    device, steps = severities.device, depth or 3
    size = (global_batch_size(len(severities), generator), severities.shape[1])
    known = torch.tensor([_index(name) for name in operations], device=device)
    random = partial(torch.rand, generator=generator, device=device, dtype=torch.float32)
    pick, level, sign = random(3, steps, *size)
    operation = known[(pick * len(known)).long().clamp_(max=len(known) - 1)]
    step = torch.arange(steps, device=device)[:, None, None]
    if depth is None:
        length = 1 + (3 * random(size)).long()
        operation = torch.where(step < length, operation, -1)
    wave = _draw_waves(operation, operations, generator)
    operation, level, sign, wave = (local_slice(drawn, generator, images=1) for drawn in (operation, level, sign, wave))
    rows = torch.arange(operation[0].numel(), device=device).view_as(operation[0])
    return _Plan(
        row=rows.expand_as(operation).flatten(),
        step=step.expand_as(operation).flatten(),
        operation=operation.flatten(),
        level=(0.1 + (severities - 0.1) * level).flatten(),
        sign=_signs(sign).flatten(),
        wave=wave.flatten(0, 2),
    )


def _draw_waves(operation: Tensor, operations: tuple[str, ...], generator: torch.Generator | None) -> Tensor:
    """Six numbers for each application of "fourier", zeros for the others; none for all where it is not in use."""
    device, kind = operation.device, torch.float32
    if "fourier" not in operations:
        return torch.empty(*operation.shape, 0, device=device, dtype=kind)
    chosen = operation == _index("fourier")
    waves = torch.zeros(*operation.shape, 6, device=device, dtype=kind)
    waves[chosen] = torch.rand(int(chosen.sum()), 6, generator=generator, device=device, dtype=kind)
    return waves


def _signs(drawn: Tensor) -> Tensor:
    """-1 or 1 for numbers in [0,1), in their type."""
    return torch.ones_like(drawn).masked_fill_(drawn < 0.5, -1)


def _index(name: str) -> int:
    if name not in OPERATIONS:
        raise unknown_name("operation", name, OPERATIONS)
    return OPERATIONS.index(name)


def _jobs(plan: _Plan, image_size: Sequence[int]) -> Iterator[tuple[str, _Job]]:
    """The plan as (group, job), step by step.

    The sizes of all groups are read at once, so that a GPU is waited for once and not for each group.
    """
    groups = torch.tensor([0] + [_GROUPS.index(_GROUP_OF[name]) for name in OPERATIONS], device=plan.row.device)
    key = plan.step * len(_GROUPS) + groups[plan.operation + 1]
    sizes, order = torch.bincount(key).tolist(), key.argsort()
    all_jobs = _Job(plan.row, plan.level, _matrices(plan, image_size), plan.wave)
    for number, job in enumerate(zip(*(values[order].split(sizes) for values in all_jobs), strict=True)):
        group = _GROUPS[number % len(_GROUPS)]
        if group != "nothing" and len(job[0]):
            yield group, _Job(*job)


def _matrices(plan: _Plan, image_size: Sequence[int]) -> Tensor:
    """The warps of the geometric operations (A,2,3), their parameters scaled as AugMix's authors do."""
    height, width = image_size
    amount = plan.sign * plan.level * 0.03
    columns = plan.sign * _whole(plan.level, width / 3)
    rows = plan.sign * _whole(plan.level, height / 3)
    none = torch.zeros_like(amount)
    kinds = {
        "rotate": geometry.rotation(plan.sign * _whole(plan.level, 30)),
        "shear-x": geometry.shear(amount, none, image_size),
        "shear-y": geometry.shear(none, amount, image_size),
        "translate-x": geometry.shift(columns, none),
        "translate-y": geometry.shift(none, rows),
    }
    numbers = torch.tensor([_index(name) for name in kinds], device=amount.device)
    chosen = (plan.operation[:, None] == numbers)[..., None, None]  # one of five, or none for the other operations
    return (chosen * torch.stack(list(kinds.values()), dim=1)).sum(1)


def _apply(group: str, images: Tensor, job: _Job) -> Tensor:
    if group == "autocontrast":
        return autocontrast(images)
    if group == "equalize":
        return equalize(images)
    if group == "posterize":
        return posterize(images, (4 - _whole(job.level, 4)).clamp(min=1))  # PIL takes no fewer bits
    if group == "solarize":
        return solarize(images, (256 - _whole(job.level, 256)).clamp(min=1))
    if group == "translate":
        return translate(images, job.matrix)
    if group == "bend":
        return affine(images, job.matrix)
    return _wave(images, job.level, job.wave)


def _whole(level: Tensor, largest: float) -> Tensor:
    """The level's share of the largest value, cut down to a whole number."""
    return (level * (largest / 10)).floor()


def _wave(images: Tensor, level: Tensor, draw: Tensor) -> Tensor:
    """A wave of any frequency up to half a cycle per pixel, at most as strong as 0.125 (root mean square)."""
    half = torch.tensor([size // 2 for size in images.shape[-2:]], device=images.device)
    frequencies = (draw[:, :2] * (2 * half + 1)).floor() - half
    return fourier(images, 0.0125 * level, frequencies, 2 * math.pi * draw[:, 2], _signs(draw[:, 3:]))


def _take(rows: Tensor, index: Tensor) -> Tensor:
    return _wide(rows).index_select(0, index).view(torch.uint8).view(-1, *rows.shape[1:])


def _put(rows: Tensor, index: Tensor, images: Tensor) -> None:
    _wide(rows).index_copy_(0, index, _wide(images))


def _wide(images: Tensor) -> Tensor:
    """The same bytes as rows of 8-byte numbers where they divide so: torch moves those several times as fast."""
    rows = images.flatten(1)
    return rows.view(torch.int64) if rows.shape[1] % 8 == 0 else rows
