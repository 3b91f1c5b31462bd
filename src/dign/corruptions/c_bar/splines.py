"""Two corruptions that resample with cubic splines: blur by a rotation, and channels of different magnification."""

import math
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dign.core.placement import copy_to_device
from dign.corruptions import linear
from dign.corruptions.streams import Streams

_ROTATIONS = 21
_SMALL = 48 * 48
"""Pixels up to which all rotations are one matrix."""
_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


def transverse_chromatic_abberation(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Magnify the three channels by 1, 1 + s/2 and 1 + s in random order, s = 0.05 level; gray images by 1 + s/2.

    Images and result (N,C,H,W) uint8, as everywhere below; `level` is the severity on the authors' scale, 0 to 10. The
    name is spelled as in the published benchmark.
    """
    choice = streams.bits(1)[:, 0].to(torch.int64).bitwise_and_(0x7FFFFFFF) * len(_ORDERS) >> 31
    orders = copy_to_device(torch.tensor(_ORDERS if images.shape[1] == 3 else [[1]] * len(_ORDERS)), images.device)
    factor = orders[choice]  # (N,C)
    x = images.to(torch.float64)
    for dim in (2, 3):
        places, weights = _magnify(images.shape[dim], 0.05 * level, images.device)
        shape = (*factor.shape, -1, 1) if dim == 2 else (*factor.shape, 1, -1)
        x = sum(
            (
                x.gather(dim, places[factor, :, tap].view(shape).expand_as(x)) * weights[factor, :, tap].view(shape)
                for tap in range(4)
            ),
            start=torch.zeros((), dtype=x.dtype, device=x.device),
        )
    return x.add_(0.5).clamp_(0, 255).to(torch.uint8)


@lru_cache(maxsize=64)
def _magnify(size: int, strength: float, device: torch.device) -> tuple[Tensor, Tensor]:
    """The four places that each place reads, and their weights, (3,size,4), for the three magnifications.

    The B-spline of the pixels themselves: it smooths, since the published code leaves out the filter before it.
    """
    places, weights = [], []
    for factor in (1.0, 1.0 + strength / 2, 1.0 + strength):
        grown = round(size * factor)
        position = (np.arange(size) + (grown - size) // 2) * ((size - 1) / max(grown - 1, 1))
        start, share = spline_weights(position)
        places.append(linear.border_index(start[:, None] + np.arange(4), size, "mirror"))
        weights.append(share)
    return torch.from_numpy(np.stack(places)).to(device), torch.from_numpy(np.stack(weights)).to(device)


def spline_weights(position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first of the four places that a cubic B-spline reads for each position, and the weights (...,4)."""
    start = np.floor(position).astype(np.int64)
    t = position - start
    weights = np.stack([(1 - t) ** 3, 3 * t**3 - 6 * t**2 + 4, 3 * (1 - t) ** 3 - 6 * (1 - t) ** 2 + 4, t**3], -1)
    return start - 1, weights / 6


def circular_motion_blur(images: Tensor, level: float, streams: Streams) -> Tensor:
    """The weighted mean of 21 rotations by up to 1.5 level degrees to both sides; black comes in at the corners."""
    height, width = images.shape[-2:]
    filters = [_prefilter(size, images.device) for size in (height, width)]
    coefficients = filters[0] @ images.to(torch.float64) @ filters[1].T
    if height * width <= _SMALL:
        operator = _rotations_matrix(height, width, 1.5 * level, images.device)
        blurred = (coefficients.flatten(2) @ operator).view(images.shape)
    else:
        blurred = _rotate_and_sum(coefficients.to(torch.float32), 1.5 * level)
    return blurred.add_(2.0**-16).clamp_(0, 255).to(torch.uint8)


@lru_cache(maxsize=8)
def _prefilter(size: int, device: torch.device) -> Tensor:
    """(size,size) float64: from values to the coefficients of the cubic B-spline through them, mirrored at the edges.

    In steps of 2^-12 here, and of 2^-16 in the operators below, so that sums of products are exact in float64.
    """
    samples = np.zeros((size, size))
    rows = np.arange(size)
    for offset, weight in ((-1, 1 / 6), (0, 4 / 6), (1, 1 / 6)):
        np.add.at(samples, (rows, linear.border_index(rows + offset, size, "mirror")), weight)
    return torch.from_numpy(np.rint(np.linalg.inv(samples) * 2**12) / 2**12).to(device)


def _angles(degrees: float) -> list[tuple[float, float]]:
    """Angle in radians and weight of every rotation."""
    steps = [2 * number / (_ROTATIONS - 1) - 1 for number in range(_ROTATIONS)]
    weights = [math.exp(-2 * step**2) for step in steps]
    return [(math.radians(step * degrees), weight / sum(weights)) for step, weight in zip(steps, weights, strict=True)]


def _rotated_places(height: int, width: int, angle: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where each pixel is read, and whether that is inside the picture, (H,W) each."""
    middle = (height - 1) / 2, (width - 1) / 2
    y, x = (np.arange(size) - center for size, center in zip((height, width), middle, strict=True))
    rows = math.cos(angle) * y[:, None] + math.sin(angle) * x + middle[0]
    columns = -math.sin(angle) * y[:, None] + math.cos(angle) * x + middle[1]
    edge = 1e-9
    inside = (rows >= -edge) & (rows <= height - 1 + edge) & (columns >= -edge) & (columns <= width - 1 + edge)
    return rows.clip(0, height - 1), columns.clip(0, width - 1), inside


@lru_cache(maxsize=8)
def _rotations_matrix(height: int, width: int, degrees: float, device: torch.device) -> Tensor:
    """(H*W,H*W) float64: from coefficients, as rows, to the blurred picture."""
    matrix = np.zeros((height * width, height * width))
    pixels = np.arange(height * width)
    for angle, weight in _angles(degrees):
        rows, columns, inside = (part.ravel() for part in _rotated_places(height, width, angle))
        (top, down), (left, across) = spline_weights(rows), spline_weights(columns)
        for i in range(4):
            row = linear.border_index(top + i, height, "mirror")
            for j in range(4):
                column = linear.border_index(left + j, width, "mirror")
                np.add.at(matrix, (row * width + column, pixels), down[:, i] * across[:, j] * inside * weight)
    return torch.from_numpy(np.rint(matrix * linear.ONE) / linear.ONE).to(device)


def _rotate_and_sum(coefficients: Tensor, degrees: float) -> Tensor:
    """The same for pictures too large for a matrix: a cubic B-spline is a mean of four linear interpolations."""
    height, width = coefficients.shape[-2:]
    total = torch.zeros_like(coefficients)
    for number in range(_ROTATIONS):
        for grid, weight in _spline_grids(height, width, degrees, number, coefficients.device):
            places = grid.expand(len(coefficients), -1, -1, -1)
            read = F.grid_sample(coefficients, places, "bilinear", padding_mode="reflection", align_corners=True)
            total.addcmul_(read, weight)
    return total


@lru_cache(maxsize=_ROTATIONS * 5)
def _spline_grids(
    height: int, width: int, degrees: float, number: int, device: torch.device
) -> tuple[tuple[Tensor, Tensor], ...]:
    """Four grids (1,H,W,2) for linear interpolation of the coefficients, each with its weights (H,W)."""
    angle, weight = _angles(degrees)[number]
    rows, columns, inside = _rotated_places(height, width, angle)
    axes = []
    for position, size in ((rows, height), (columns, width)):
        start, taps = spline_weights(position)
        pairs = []
        for first in (0, 2):
            share = taps[..., first] + taps[..., first + 1]
            place = start + first + taps[..., first + 1] / share
            pairs.append((place * (2 / (size - 1)) - 1, share))
        axes.append(pairs)
    grids = []
    for down, row_share in axes[0]:
        for across, column_share in axes[1]:
            grid = torch.from_numpy(np.stack([across, down], -1)[None]).to(device, torch.float32)
            grids.append((grid, torch.from_numpy(row_share * column_share * inside * weight).to(device, torch.float32)))
    return tuple(grids)
