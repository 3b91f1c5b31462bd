"""Three distortions: every pixel is read elsewhere, linearly between pixels, and black beyond the edges."""

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dign.core.pixels import divide
from dign.corruptions import linear
from dign.corruptions.c_bar.grids import draw_uniform, pixel_places
from dign.corruptions.streams import Streams


def ripple(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Read row r at r + a sin(2 pi r / wavelength + phase), a = 0.0025 level sides; columns likewise.

    Images and result (N,C,H,W) uint8, as everywhere below; `level` is the severity on the authors' scale, 0 to 10.
    """
    draws = streams.uniform(4).to(torch.float64)
    x = images.to(torch.float64)
    for dim, length in enumerate(images.shape[-2:]):
        wavelength = (0.1 + 0.2 * draws[:, dim : dim + 1]) * min(images.shape[-2:])
        phase = 2 * math.pi * draws[:, dim + 2 : dim + 3]
        places = torch.arange(length, dtype=torch.float64, device=images.device)
        wave = torch.sin(2 * math.pi * places / wavelength + phase)
        x = _read_axis(x, dim + 2, places + wave * (0.0025 * level * min(images.shape[-2:])))
    return x.clamp_(0, 255).to(torch.uint8)


def _read_axis(x: Tensor, dim: int, places: Tensor) -> Tensor:
    """Read (N,C,H,W) along one axis at fractional places (N,length), the same for all lines."""
    low = places.floor()
    fraction = places - low
    total = torch.zeros((), dtype=x.dtype, device=x.device)
    for offset, weight in ((0, 1 - fraction), (1, fraction)):
        index = low.to(torch.int64) + offset
        inside = (index >= 0) & (index < x.shape[dim])
        shape = (-1, 1, x.shape[2], 1) if dim == 2 else (-1, 1, 1, x.shape[3])
        taken = x.gather(dim, index.clamp(0, x.shape[dim] - 1).view(shape).expand_as(x))
        total = total + taken * (weight * inside).view(shape)
    return total


def pinch_and_twirl(images: Tensor, setting: tuple[float, int], streams: Streams) -> Tensor:
    """Divide the picture into squares, and pinch and twirl the disk in each, to a random side.

    setting: (level, squares along a side).
    """
    level, squares = setting
    index, weights, cells = _twirls(*images.shape[-2:], level, squares, images.device)
    left = streams.bits(squares * squares) < 0
    turn = left[:, cells].to(torch.int64) * index.shape[1]  # (N,H*W): which of the two tables
    flat = images.flatten(2).to(torch.float64)
    place = torch.arange(index.shape[1], device=images.device) + turn
    total = torch.zeros_like(flat)
    for tap in range(4):
        source, weight = index[:, :, tap].flatten()[place], weights[:, :, tap].flatten()[place]
        total.add_(flat.gather(2, source[:, None].expand_as(flat)).mul_(weight[:, None]))
    return total.clamp_(0, 255).to(torch.uint8).view(images.shape)


@lru_cache(maxsize=16)
def _twirls(height: int, width: int, level: float, squares: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """For both turns: the four pixels that each pixel reads, and their weights, (2,H*W,4); its square (H*W,).

    At distance d < 1 radius from the center of a square, offsets are scaled by sin(pi d / 2)^-amount and turned by
    angle (1 - d)^2.
    """
    angle, amount = level * math.pi / 20, 0.04 * level + 0.1
    rows, columns = np.meshgrid(np.arange(height), np.arange(width), indexing="ij")
    side = [height // squares, width // squares]
    cell = [np.minimum(place // length, squares - 1) for place, length in zip((rows, columns), side, strict=True)]
    y, x = (place - (number + 0.5) * length for place, number, length in zip((rows, columns), cell, side, strict=True))
    radius = min(side) / 2
    distance = np.hypot(y, x)
    inside = (distance <= radius) & (distance > 5e-4) & (rows < squares * side[0]) & (columns < squares * side[1])
    d = np.where(inside, distance / radius, 1.0)
    scale = np.sin(np.pi * 0.5 * d) ** -amount
    index, weights = [], []
    for turn in (angle, -angle):
        a = turn * (1 - d) ** 2
        down = np.where(inside, rows - y + scale * (y * np.cos(a) - x * np.sin(a)), rows)
        across = np.where(inside, columns - x + scale * (y * np.sin(a) + x * np.cos(a)), columns)
        places, shares = bilinear_taps(torch.from_numpy(down), torch.from_numpy(across), height, width)
        index.append(places.flatten(0, 1))
        weights.append(shares.flatten(0, 1))
    cells = torch.from_numpy(cell[0] * squares + cell[1]).flatten()
    return torch.stack(index).to(device), torch.stack(weights).to(device), cells.to(device)


def bilinear_taps(rows: Tensor, columns: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """The four pixels around fractional places (...,), as numbers in an image of this size, and weights, (...,4).

    Pixels beyond the edges have the weight 0.
    """
    top, left = rows.floor(), columns.floor()
    down, across = rows - top, columns - left
    places, weights = [], []
    for row, share in ((top, 1 - down), (top + 1, down)):
        for column, part in ((left, 1 - across), (left + 1, across)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            places.append(row.clamp(0, height - 1) * width + column.clamp(0, width - 1))
            weights.append(share * part * inside)
    return torch.stack(places, dim=-1).to(torch.int64), torch.stack(weights, dim=-1)


def caustic_refraction(images: Tensor, level: float, streams: Streams) -> Tensor:
    """See the picture through water with caustics: a lens with their relief that refracts, and is lit from one side."""
    height, width = images.shape[-2:]
    relief = _blur(caustics(images, streams))
    padded = torch.nn.functional.pad(relief, (1, 1, 1, 1))
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    cosine = (across.square() + down.square() + 1).rsqrt_()
    # Snell's law for a ray from above, eta = 4; nearly level surfaces do not refract.
    refracted = (1 - (1 - cosine.square()) / 16).sqrt_() - cosine / 4
    shift = (refracted * cosine * (cosine.abs() < 1 - 1e-3)).mul_(0.05 * level * min(height, width))
    rows, columns = pixel_places(images)
    rows, columns = rows + _thousandths(down * shift), columns + _thousandths(across * shift)
    places, weights = bilinear_taps(rows, columns, height, width)
    light = (down - across).mul_(0.2 * level * 255)[:, None]
    flat = images.flatten(2)
    seen = torch.zeros(images.shape, dtype=torch.float64, device=images.device)
    for tap in range(4):
        source = places[..., tap].flatten(1)[:, None].expand_as(flat)
        seen.add_(flat.gather(2, source).view(images.shape) * weights[:, None, ..., tap])
    return seen.add_(light).clamp_(0, 255).to(torch.uint8)


def _thousandths(x: Tensor) -> Tensor:
    return divide((x * 1000).round_(), 1000)


def caustics(images: Tensor, streams: Streams) -> Tensor:
    """(N,H,W) float64 in [0,1]: the light that waves focus on the ground of shallow water, in five steps."""
    height, width = images.shape[-2:]
    time, scale = draw_uniform(streams, 2)
    time, scale = 0.5 + 1.5 * time, (0.75 + 0.5 * scale) * min(height, width)
    y, x = ((place / scale).remainder_(1).mul_(6.28318530718).sub_(250) for place in pixel_places(images))
    y, x = torch.broadcast_tensors(y, x)
    down, across = y, x
    light = torch.ones_like(y)
    for step in range(1, 6):
        t = time * (1 - 3.5 / step)
        down, across = (
            y + torch.cos(t - down) + torch.sin(t + across),
            x + torch.sin(t - across) + torch.cos(t + down),
        )
        distance = torch.hypot(y / torch.sin(down + t), x / torch.cos(across + t)).mul_(0.005)
        light = light + distance.reciprocal_()
    return (1.17 - (light * 0.2).pow_(1.4)).abs_().pow_(8).clamp_(0, 1)


def _blur(x: Tensor) -> Tensor:
    """A Gaussian filter of deviation 1, cut off at four, edges reflected."""
    return linear.gaussian_filter(x, 1.0, border="reflect")
