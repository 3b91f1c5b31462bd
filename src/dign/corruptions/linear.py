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

from dign.core.pixels import to_float, truncate_to_uint8
from dign.core.placement import copy_to_device

WEIGHT_BITS = 16
ONE = 2**WEIGHT_BITS
_MANY_TAPS = 8


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


@lru_cache(maxsize=64)
def gaussian_matrix(
    sigma: float, size: int, device: torch.device, border: str = "nearest", truncate: float = 4.0
) -> Tensor:
    """(size,size) float64: one axis of a Gaussian filter, borders included."""
    weights = fixed_point(_gaussian(sigma, truncate)) / ONE
    matrix = np.zeros((size, size))
    rows = np.arange(size)
    for tap, offset in enumerate(range(-(len(weights) // 2), len(weights) // 2 + 1)):
        np.add.at(matrix, (rows, border_index(rows + offset, size, border)), weights[tap])
    return torch.from_numpy(matrix).to(device)


def gaussian_filter(x: Tensor, sigma: float, border: str = "nearest", truncate: float = 4.0) -> Tensor:
    """Blur (...,H,W), whole numbers (or whole multiples of a power of two) of up to 20 bits; the result is float64."""
    height, width = x.shape[-2:]
    down = gaussian_matrix(sigma, height, x.device, border, truncate)
    across = gaussian_matrix(sigma, width, x.device, border, truncate)
    return down @ x.to(torch.float64) @ across.T


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
        return gaussian_filter(images, sigma).to(torch.uint8)
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
def zoom_matrix(size: int, factor: float, device: torch.device) -> Tensor:
    """(size,size) float64: one axis of a center zoom."""
    places, weights = zoom_taps(size, factor)
    matrix = np.zeros((size, size))
    np.add.at(matrix, (np.arange(size)[:, None], places), np.rint(weights * ONE) / ONE)
    return torch.from_numpy(matrix).to(device)


def zoom(x: Tensor, factor: float) -> Tensor:
    """Zoom the center of (...,H,W) whole numbers, or whole multiples of a power of two; the result is float64."""
    down, across = (zoom_matrix(size, factor, x.device) for size in x.shape[-2:])
    return down @ x.to(torch.float64) @ across.T


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


def apply_operator(operator: Tensor, images: Tensor) -> Tensor:
    """Apply a fixed-point matrix over pixels to every channel of (N,C,H,W) uint8; truncated to uint8."""
    columns = images.flatten(2).flatten(0, 1).to(torch.float32).T.contiguous()
    result = (operator @ columns).mul_(1 / ONE).to(torch.uint8)
    return result.T.reshape(images.shape)


def correlate(images: Tensor, kernel: np.ndarray, border: str) -> Tensor:
    """Correlate every channel of (N,C,H,W) uint8 with a kernel (odd sides) that sums to about 1; truncated to uint8.

    Weights such as 1/5 have no finite binary form. The first summand makes up for it, so that a result that is a whole
    number in exact arithmetic is not truncated to the one below. Kernels with many weights hardly ever meet a whole
    number; for them float32 has digits enough, and is faster.
    """
    few = np.count_nonzero(kernel > 0.5 / ONE) <= 64
    one, dtype, start = (2**32, torch.float64, 2.0**-20) if few else (ONE, torch.float32, 0.0)
    weights = fixed_point(kernel, one) / one
    taps = [(int(y), int(x), float(weights[y, x])) for y, x in zip(*np.nonzero(weights), strict=True)]
    reach = max(max(abs(y - kernel.shape[0] // 2), abs(x - kernel.shape[1] // 2)) for y, x, _ in taps)
    padded = pad(images, (reach,) * 4, border).to(dtype)
    height, width = images.shape[-2:]
    total = torch.full(images.shape, start, dtype=dtype, device=images.device)
    for y, x, weight in taps:
        top, left = reach + y - kernel.shape[0] // 2, reach + x - kernel.shape[1] // 2
        total.add_(padded[:, :, top : top + height, left : left + width], alpha=weight)
    return total.clamp_(max=255).to(torch.uint8)


def pad(images: Tensor, margins: tuple[int, int, int, int], border: str) -> Tensor:
    """Enlarge (...,H,W) by (top, bottom, left, right) places, however large they are, as `border_index` says."""
    top, bottom, left, right = margins
    for dim, before, after in ((-2, top, bottom), (-1, left, right)):
        size = images.shape[dim]
        if before or after:
            places = border_index(np.arange(-before, size + after), size, border)
            images = images.index_select(dim, copy_to_device(torch.from_numpy(places), images.device))
    return images
