"""PRIME's three random transforms of maximum entropy, in the spectrum, in space and in color (Modas et al., 2022).

And their mixtures. Transforms take float images (N,C,H,W) in [0,1], and numbers that were drawn for each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dign.augment.chains import dirichlet
from dign.core.compiled_draws import define_draw
from dign.core.image_rng import global_batch_size, local_slice
from dign.core.placement import copy_to_device
from dign.core.seeds import host_generator

MODES = 100
"""Frequencies of a displacement, along each axis, and of a color curve; an image gets up to so many."""
FEWEST_MODES = 2
SIGMA = 4.0
"""Largest standard deviation of a filter's coefficients."""
TEMPERATURE = 0.01
"""Largest variance of a color curve's coefficients."""
NODES = 2048
"""Points between which a color curve is taken to be straight: within 0.3 % even of its fastest wave."""
STEPS = 3
"""Most transforms in a chain."""


def filter_randomly(x: Tensor, sigma: Tensor, noise: Tensor) -> Tensor:
    """Convolve with a 3x3 kernel, the same for all channels: that of the identity plus `sigma` times `noise`.

    Args:
        x: Images (N,C,H,W).
        sigma: (N,).
        noise: Standard normal numbers (N,3,3).

    >>> x = torch.rand(2, 3, 4, 4)
    >>> bool(torch.equal(filter_randomly(x, torch.zeros(2), torch.zeros(2, 3, 3)), x))
    True
    """
    kernel = sigma.view(-1, 1, 1) * noise
    padded = functional.pad(x, (1, 1, 1, 1))
    height, width = x.shape[-2:]
    filtered = x.clone()
    for row in range(3):
        for column in range(3):
            part = padded[..., row : row + height, column : column + width]
            filtered.addcmul_(part, kernel[:, row, column].view(-1, 1, 1, 1))
    return filtered.clamp_(0, 1)


def deform_randomly(x: Tensor, cut: Tensor, warmth: Tensor, noise: Tensor) -> Tensor:
    """Move pixels by smooth random displacements: sqrt(T) n sum_{|(i,j)| < cut + 1/2} c_ij sin(pi i x) sin(pi j y).

    n is the image's side, c_ij has the variance 1 / (i^2 + j^2). The temperature T lies between that which moves the
    center by half a pixel, 1 / (pi n^2 ln cut), and the highest without overlaps, 4 / (pi^3 cut^2 ln cut), if it is
    higher.

    Args:
        x: Images (N,C,H,W).
        cut: Whole numbers (N,), 2 to MODES.
        warmth: Where T lies between its bounds (N,), 0 to 1.
        noise: Standard normal numbers (N,2,*visible_modes), for the displacement along columns and along rows.

    >>> noise = torch.randn(2, 2, *visible_modes((8, 8)))
    >>> deform_randomly(torch.rand(2, 3, 8, 8), torch.tensor([2.0, 9.0]), torch.rand(2), noise).shape
    torch.Size([2, 3, 8, 8])
    """
    columns, rows = displacements(x.shape[-2:], cut, warmth, noise).unbind(1)
    height, width = x.shape[-2:]
    across = (torch.arange(width, device=x.device) - columns).clamp_(0, width - 1)
    down = (torch.arange(height, device=x.device)[:, None] - rows).clamp_(0, height - 1)
    positions = torch.stack(((2 * across + 1) / width - 1, (2 * down + 1) / height - 1), dim=-1)
    return functional.grid_sample(x, positions, mode="bilinear", padding_mode="border", align_corners=False)


def displacements(image_size: torch.Size | tuple[int, int], cut: Tensor, warmth: Tensor, noise: Tensor) -> Tensor:
    """The displacements of `deform_randomly` in pixels (N,2,H,W): along columns and along rows.

    At the pixels of an image every mode beyond `visible_modes` has the values of a lower one. So it is not drawn: its
    variance is added to that of the lower one, which gives the same distribution from a tenth of the numbers.
    """
    mode = torch.arange(1, MODES + 1, device=noise.device, dtype=noise.dtype)
    squared = mode[:, None].square() + mode.square()
    variance = (squared.sqrt() < cut.view(-1, 1, 1) + 0.5) / squared
    folds = [_fold(size, mode) for size in image_size]
    spread = (folds[0].T @ variance @ folds[1]).sqrt()
    down, across = (
        torch.sin(math.pi * _evenly(size, noise)[:, None] * mode[: fold.shape[1]])
        for size, fold in zip(image_size, folds, strict=True)
    )
    fields = down @ (noise * spread[:, None]) @ across.T
    side = max(image_size)
    log = (cut + 1e-6).log()
    lowest, highest = 1 / (math.pi * side**2 * log), 4 / (math.pi**3 * (cut + 1e-6).square() * log)
    temperature = lowest + warmth * (highest - lowest).clamp(min=0)
    return fields * (side * temperature.sqrt()).view(-1, 1, 1, 1)


def visible_modes(image_size: torch.Size | tuple[int, int]) -> tuple[int, int]:
    """How many modes sin(pi i x) differ at the pixels of an image, along rows and along columns.

    >>> visible_modes((32, 224))
    (30, 100)
    """
    height, width = (min(MODES, max(size - 2, 1)) for size in image_size)
    return height, width


def _fold(size: int, mode: Tensor) -> Tensor:
    """Which visible mode each mode looks like at the pixels along an axis, as (MODES,visible) of zeros and ones."""
    last = max(size - 1, 1)  # pixels are at 0, 1 / last, ..., 1
    turned = mode.remainder(2 * last)
    seen = torch.where(turned > last, 2 * last - turned, turned)  # 0 and `last` vanish at every pixel
    visible = visible_modes((size, size))[0]
    return (seen[:, None] == mode[:visible]).to(mode.dtype) * (seen < last)[:, None]


def color_randomly(x: Tensor, cut: Tensor, temperature: Tensor, noise: Tensor) -> Tensor:
    """Send every value c through a random curve of its channel: c + sqrt(T) sum_{k <= cut} b_k sin(pi k c), clipped.

    Args:
        x: Images (N,C,H,W) in [0,1].
        cut: Whole numbers (N,), 1 to MODES.
        temperature: T (N,).
        noise: Standard normal numbers b (N,C,MODES).

    >>> x = torch.rand(2, 3, 4, 4)
    >>> bool(torch.equal(color_randomly(x, torch.ones(2), torch.zeros(2), torch.randn(2, 3, 100)), x))
    True
    """
    mode = torch.arange(1, noise.shape[-1] + 1, device=x.device, dtype=x.dtype)
    coefficients = noise * (temperature.sqrt()[:, None] * (mode <= cut[:, None]))[:, None]
    table = coefficients @ torch.sin(math.pi * mode[:, None] * _evenly(NODES + 1, x))
    place_in_table = x.flatten(2).clamp(0, 1) * NODES
    before = place_in_table.floor().clamp_(max=NODES - 1)
    index = before.long()
    low, high = table.gather(2, index), table.gather(2, index + 1)
    return torch.lerp(low, high, place_in_table - before).view_as(x).add_(x).clamp_(0, 1)


def _evenly(count: int, like: Tensor) -> Tensor:
    """Numbers from 0 to 1, evenly spaced, ends included."""
    return torch.linspace(0, 1, count, device=like.device, dtype=like.dtype)


def mix_primitives(
    x: Tensor, views: int, *, width: int = 3, depth: int | None = None, generator: torch.Generator | None = None
) -> Tensor:
    """Mixtures of chains of PRIME's transforms: AugMix, with other operations.

    Each of `width` chains of an image is one to three transforms, any of the three with any strength. They are mixed
    with Dirichlet(1) weights, and the mixture with the image itself at a share drawn from Beta(1, 1).

    Args:
        x: Images (N,3,H,W) in [0,1].
        views: Mixtures of each image.
        width: Chains in a mixture.
        depth: Transforms in a chain; None draws one to three for each.
        generator: The source of all random numbers, on the device of `x`.

    Returns:
        Images (views,N,3,H,W) in [0,1].

    >>> mix_primitives(torch.rand(2, 3, 8, 8), 2).shape
    torch.Size([2, 2, 3, 8, 8])
    """
    if torch.compiler.is_compiling():
        mixed: Tensor = _compiled_mixtures(x, views, width, depth)
        return mixed
    rows = x.float()[:, None].expand(-1, views * width, -1, -1, -1).flatten(0, 1).contiguous()
    with torch.autocast(x.device.type, enabled=False):
        for kind, job in _draw_jobs(len(x), views * width, depth, x.device, generator):
            rows.index_copy_(0, job.place, _TRANSFORMS[kind](rows.index_select(0, job.place), job))
    chained = rows.view(len(x), views, width, *x.shape[1:])
    weights = torch.stack([dirichlet(len(x), width, 1.0, x.device, generator) for _ in range(views)])
    share = torch.stack([dirichlet(len(x), 2, 1.0, x.device, generator)[:, 0] for _ in range(views)])
    scaled = (weights * share[..., None]).transpose(0, 1)  # (N,views,width)
    mixture = torch.einsum("nvw,nvw...->vn...", scaled, chained)
    own = (1 - share)[..., None, None, None] * x.float()
    return (own + mixture).to(x.dtype)


class _Job(NamedTuple):
    """The rows that one transform is applied to, and how to draw for them."""

    place: Tensor
    """Rows of this process, on the device."""
    total: int
    """Rows of all processes."""
    own: Tensor
    """Which of these are this process's."""
    generator: torch.Generator | None

    def normal(self, *shape: int) -> Tensor:
        size = (self.total, *shape)
        drawn = torch.randn(size, generator=self.generator, device=self.place.device, dtype=torch.float32)
        return drawn.index_select(0, self.own)

    def uniform(self, count: int) -> Iterator[Tensor]:
        size = (self.total, count)
        drawn = torch.rand(size, generator=self.generator, device=self.place.device, dtype=torch.float32)
        return iter(drawn.index_select(0, self.own).unbind(1))


def _draw_jobs(
    count: int, chains: int, depth: int | None, device: torch.device, generator: torch.Generator | None
) -> Iterator[tuple[int, _Job]]:
    """Which transform comes where, step by step: drawn on the host, which has to know how many rows a call gets."""
    steps, size = depth or STEPS, (global_batch_size(count, generator), chains)
    host = host_generator(generator)
    kinds = (torch.rand(steps, *size, generator=host, dtype=torch.float32) * 3).long().clamp_(max=2)
    lengths = torch.full(size, steps)
    if depth is None:
        lengths = 1 + (torch.rand(size, generator=host, dtype=torch.float32) * STEPS).long().clamp_(max=STEPS - 1)
    for step in range(steps):
        for kind in range(3):
            chosen = (kinds[step] == kind) & (lengths > step)
            number = chosen.flatten().cumsum(0).view(size) - 1
            here = local_slice(chosen, generator).flatten().nonzero().flatten()
            own = local_slice(number, generator).flatten()[here]
            total = int(number[-1, -1]) + 1
            if total:
                place, own = copy_to_device(torch.stack((here, own)), device)
                yield kind, _Job(place, total, own, generator)


def _filter(rows: Tensor, job: _Job) -> Tensor:
    (sigma,) = job.uniform(1)
    return filter_randomly(rows, SIGMA * sigma, job.normal(3, 3))


def _deform(rows: Tensor, job: _Job) -> Tensor:
    most, share, warmth = job.uniform(3)
    most = FEWEST_MODES + 1 + ((MODES - FEWEST_MODES) * most).floor().clamp(max=MODES - FEWEST_MODES - 1)
    cut = (FEWEST_MODES + (most + 1 - FEWEST_MODES) * _arcsine(share)).floor().minimum(most)
    return deform_randomly(rows, cut, _arcsine(warmth), job.normal(2, *visible_modes(rows.shape[-2:])))


def _color(rows: Tensor, job: _Job) -> Tensor:
    cut, temperature = job.uniform(2)
    cut = 1 + (MODES * cut).floor().clamp(max=MODES - 1)
    return color_randomly(rows, cut, TEMPERATURE * temperature, job.normal(rows.shape[1], MODES))


def _arcsine(draw: Tensor) -> Tensor:
    """Numbers of the distribution Beta(1/2, 1/2), for numbers in [0,1)."""
    return (0.5 * math.pi * draw).sin().square()


_TRANSFORMS = (_filter, _deform, _color)


def _draw_mixtures(
    x: Tensor, views: int, width: int, depth: int | None, *, generator: torch.Generator | None
) -> Tensor:
    return mix_primitives(x, views, width=width, depth=depth, generator=generator)


_compiled_mixtures = define_draw(
    "mix_primitives(Tensor x, int views, int width, int? depth) -> Tensor",
    _draw_mixtures,
    lambda x, views, width, depth: x.new_empty(views, *x.shape),
)
