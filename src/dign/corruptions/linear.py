"""Filters, resampling and sparse operators whose results do not depend on the order of summation.

Floating-point sums depend on the order of their terms, and that order depends on batch sizes, threads and devices. All
sums here are exact instead: values are whole numbers, weights are whole multiples of 2^-WEIGHT_BITS, and no partial
sum outgrows the mantissa (24 bits in float32, 53 in float64). So every batch size gives the same bytes.
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dign.core.pixels import to_float, truncate_to_uint8, whole_to_uint8

WEIGHT_BITS = 16
ONE = 2**WEIGHT_BITS
_MANY_TAPS = 8
_BLOCK = 32  # rows of a banded matrix that are multiplied together

# One axis of a filter, as blocks of rows of its matrix: (first row, first and last column that are not zero, values)
Bands = tuple[tuple[int, int, int, Tensor], ...]


def fixed_point(weights: np.ndarray, one: int = ONE) -> np.ndarray:
    """Weights as multiples of 1/`one`, which sum to what the weights do; the largest takes what rounding leaves."""
    whole: np.ndarray = np.rint(weights * one)
    whole.flat[np.argmax(whole)] += np.rint(weights.sum() * one) - whole.sum()
    return whole


def border_index(index: np.ndarray, size: int, border: str) -> np.ndarray:
    """Where a position outside 0..size-1 is read: `nearest` (aa|abc), `reflect` (ba|abc), `mirror` (cb|abc)."""
    if border == "nearest":
        return index.clip(0, size - 1)
    doubled = 1 if border == "reflect" else 0  # whether the edge itself appears twice
    period = 2 * (size - 1 + doubled)
    folded = index % period
    return np.where(folded < size, folded, period - doubled - folded)


def _gaussian(sigma: float, truncate: float) -> np.ndarray:
    """(2r+1,) weights of a Gaussian cut off at r = `truncate` standard deviations, rounded."""
    radius = int(truncate * sigma + 0.5)
    weights: np.ndarray = np.exp(-0.5 / sigma**2 * np.arange(-radius, radius + 1) ** 2)
    weights /= weights.sum()
    return weights


def _bands(matrix: np.ndarray, device: torch.device) -> Bands:
    """Cut a float64 matrix into blocks of rows, without the columns at either side that are zero in all of them."""
    blocks = []
    for start in range(0, len(matrix), _BLOCK):
        rows = matrix[start : start + _BLOCK]
        used = np.flatnonzero(rows.any(axis=0))
        first, last = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
        blocks.append((start, first, last, torch.from_numpy(rows[:, first:last].copy()).to(device)))
    return tuple(blocks)


def apply_bands(x: Tensor, down: Bands, across: Bands) -> Tensor:
    """`down` times (...,H,W) times the transpose of `across`; the result is float64.

    A filter reads near places only: most of its matrix is zero, and most of that is left out here.
    """
    x = x.to(torch.float64)
    if len(down) == len(across) == 1:
        (_, top, bottom, rows), (_, left, right, columns) = down[0], across[0]
        return rows @ x[..., top:bottom, left:right] @ columns.T
    x = torch.cat([values @ x[..., first:last, :] for _, first, last, values in down], dim=-2)
    flat = x.reshape(-1, x.shape[-1])
    result = flat.new_empty((len(flat), across[-1][0] + len(across[-1][3])))
    for start, first, last, values in across:
        result[:, start : start + len(values)] = flat[:, first:last] @ values.T
    return result.view(*x.shape[:-1], -1)


@lru_cache(maxsize=64)
def gaussian_bands(
    sigma: float, size: int, device: torch.device, border: str = "nearest", truncate: float = 4.0
) -> Bands:
    """One axis of a Gaussian filter, borders included."""
    weights = fixed_point(_gaussian(sigma, truncate)) / ONE
    matrix = np.zeros((size, size))
    rows = np.arange(size)
    for tap, offset in enumerate(range(-(len(weights) // 2), len(weights) // 2 + 1)):
        np.add.at(matrix, (rows, border_index(rows + offset, size, border)), weights[tap])
    return _bands(matrix, device)


def gaussian_filter(x: Tensor, sigma: float, border: str = "nearest", truncate: float = 4.0) -> Tensor:
    """Blur (...,H,W), whole numbers (or whole multiples of a power of two) of up to 20 bits; the result is float64."""
    height, width = x.shape[-2:]
    down = gaussian_bands(sigma, height, x.device, border, truncate)
    across = gaussian_bands(sigma, width, x.device, border, truncate)
    return apply_bands(x, down, across)


def gaussian_blur(images: Tensor, sigma: float) -> Tensor:
    """Blur (N,C,H,W) uint8 with a Gaussian cut off at four sigma, edges repeated; truncated to uint8.

    Where the image is uniform, rounding errors of the published float64 filter decide whether a value v is truncated
    to v or to v - 1. So this one adds and multiplies in the same order: the middle, then pairs from the outside in.
    Wide filters, for which that would take long, go the exact way.
    """
    weights = _gaussian(sigma, truncate=4.0)
    radius = len(weights) // 2
    if radius == 0:
        return images
    if radius > _MANY_TAPS:
        return whole_to_uint8(gaussian_filter(images, sigma))
    x = to_float(pad(images, (radius,) * 4, "nearest"), torch.float64)
    for dim, size in zip((2, 3), images.shape[-2:], strict=True):
        total = x.narrow(dim, radius, size) * float(weights[radius])
        for tap in range(radius):
            pair = x.narrow(dim, tap, size) + x.narrow(dim, 2 * radius - tap, size)
            total.add_(pair.mul_(float(weights[tap])))
        x = total
    return truncate_to_uint8(x)


@lru_cache(maxsize=64)
def zoom_taps(size: int, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """One axis of a center zoom: the two positions that each of `size` places reads, and their weights, (size,2) each.

    The central ceil(size/factor) places are resampled linearly, with corners aligned, to round(that * factor)
    places, of which the central `size` are kept.
    """
    cropped = math.ceil(size / factor)
    grown = max(round(cropped * factor), size)
    position = (np.arange(size) + (grown - size) // 2) * ((cropped - 1) / max(grown - 1, 1))
    low = np.minimum(position.astype(int), cropped - 1)
    high = np.minimum(low + 1, cropped - 1)
    fraction = position - low
    return (size - cropped) // 2 + np.stack([low, high], 1), np.stack([1 - fraction, fraction], 1)


@lru_cache(maxsize=16)
def zoom_bands(size: int, factor: float, device: torch.device) -> Bands:
    """One axis of a center zoom."""
    places, weights = zoom_taps(size, factor)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (np.arange(size)[:, None], places), np.rint(weights * ONE) / ONE)
    return _bands(matrix, device)


def zoom(x: Tensor, factor: float) -> Tensor:
    """Zoom the center of (...,H,W) whole numbers, or whole multiples of a power of two; the result is float64."""
    down, across = (zoom_bands(size, factor, x.device) for size in x.shape[-2:])
    return apply_bands(x, down, across)


@lru_cache(maxsize=8)
def zoom_mean_operator(height: int, width: int, factors: Sequence[float], device: torch.device) -> Tensor:
    """The mean of an image and of its center zooms, as one sparse fixed-point matrix (H*W, H*W)."""
    diagonal = torch.arange(height * width)
    rows, columns, values = [diagonal], [diagonal], [torch.ones(height * width, dtype=torch.float64)]
    for factor in factors:
        (down, down_weight), (across, across_weight) = zoom_taps(height, factor), zoom_taps(width, factor)
        place = down[:, None, :, None] * width + across[None, :, None, :]
        weight = down_weight[:, None, :, None] * across_weight[None, :, None, :]
        rows.append(diagonal.repeat_interleave(4))
        columns.append(torch.from_numpy(place.reshape(-1)))
        values.append(torch.from_numpy(weight.reshape(-1)))
    entries = torch.stack([torch.cat(rows), torch.cat(columns)])
    return _fixed_point_operator(entries, torch.cat(values) / (len(factors) + 1), height * width).to(device)


def _fixed_point_operator(entries: Tensor, values: Tensor, size: int) -> Tensor:
    """Add up duplicate entries, round to fixed point, and let the diagonal take what rounding leaves."""
    total = torch.sparse_coo_tensor(entries, values, (size, size), check_invariants=False).coalesce()
    rows, columns = total.indices()
    whole = (total.values() * ONE).round_()
    missing = ONE - torch.zeros(size, dtype=torch.float64).index_add_(0, rows, whole)
    whole[rows == columns] += missing
    whole = whole.to(torch.float32)
    return torch.sparse_coo_tensor(total.indices(), whole, (size, size), is_coalesced=True, check_invariants=False)


@lru_cache(maxsize=64)
def _zoom_places(size: int, factor: float, device: torch.device) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """`zoom_taps` as two pairs of (places, weights in float32)."""
    places, weights = (torch.from_numpy(taps.T.copy()).to(device) for taps in zoom_taps(size, factor))
    weights = weights.to(torch.float32)
    return (places[0], weights[0]), (places[1], weights[1])


def zoom_mean(images: Tensor, factors: Sequence[float]) -> Tensor:
    """The mean of (N,C,H,W) uint8 and of its center zooms, zoom by zoom; truncated to uint8.

    For large images, whose operator would be large too. Every value is summed up on its own and in the same order; what
    is added at the end exceeds every rounding error, so that a whole number is not truncated to the one below.
    """
    height, width = images.shape[-2:]
    x = images.reshape(-1, height, width).to(torch.float32)
    total = x.view(-1, width).clone()
    for factor in factors:
        if factor == 1:
            total.add_(x.view(-1, width))
            continue
        low, high = _zoom_places(height, factor, images.device)
        tall = x.index_select(1, low[0]).mul_(low[1][:, None]).add_(x.index_select(1, high[0]).mul_(high[1][:, None]))
        for places, weights in _zoom_places(width, factor, images.device):
            total.add_(tall.view(-1, width).index_select(1, places).mul_(weights))
    return whole_to_uint8(total.mul_(1 / (len(factors) + 1)).add_(2.0**-11)).view(images.shape)


def apply_operator(operator: Tensor, images: Tensor) -> Tensor:
    """Apply a fixed-point matrix over pixels to every channel of (N,C,H,W) uint8; truncated to uint8."""
    columns = images.flatten(2).flatten(0, 1).to(torch.float32).T.contiguous()
    result = whole_to_uint8((operator @ columns).mul_(1 / ONE))
    return result.T.reshape(images.shape)


def correlate(images: Tensor, kernel: np.ndarray, border: str) -> Tensor:
    """Correlate every channel of (N,C,H,W) uint8 with a kernel (odd sides) that sums to about 1; truncated to uint8.

    Weights such as 1/5 have no finite binary form. The first summand makes up for it, so that a result that is a whole
    number in exact arithmetic is not truncated to the one below. Values of equal weight are added up as whole numbers.
    """
    weights = fixed_point(kernel, 2**32) / 2**32
    rows, columns = (np.arange(side) - side // 2 for side in kernel.shape)
    reach = int(max(np.abs(rows[weights.any(axis=1)]).max(), np.abs(columns[weights.any(axis=0)]).max()))
    padded = pad(images, (reach,) * 4, border).to(torch.int16)
    height, width = images.shape[-2:]
    total = torch.full(images.shape, 2.0**-20, dtype=torch.float64, device=images.device)
    for weight in np.unique(weights[weights != 0]):
        alike = torch.zeros(images.shape, dtype=torch.int16, device=images.device)
        for y, x in zip(*np.nonzero(weights == weight), strict=True):
            top, left = reach + int(rows[y]), reach + int(columns[x])
            alike.add_(padded[:, :, top : top + height, left : left + width])
        total.add_(alike.to(torch.float64), alpha=float(weight))
    return whole_to_uint8(total.clamp_(max=255))


def pad(images: Tensor, margins: tuple[int, int, int, int], border: str) -> Tensor:
    """Enlarge (...,H,W) by (top, bottom, left, right) places, however large they are, as `border_index` says."""
    top, bottom, left, right = margins
    for dim, before, after in ((-2, top, bottom), (-1, left, right)):
        size = images.shape[dim]
        sides = [
            images.index_select(dim, _border_places(first, last, size, border, images.device))
            for first, last in ((-before, 0), (size, size + after))
        ]
        if before or after:
            images = torch.cat([sides[0], images, sides[1]], dim=dim)
    return images


@lru_cache(maxsize=256)
def _border_places(first: int, last: int, size: int, border: str, device: torch.device) -> Tensor:
    return torch.from_numpy(border_index(np.arange(first, last), size, border)).to(device)
