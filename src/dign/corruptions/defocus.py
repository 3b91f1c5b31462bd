"""Correlation with a softened disk, the kernel of `defocus_blur`.

The kernel is a disk of equal weights, smoothed by a small Gaussian. So the sums of the image over the disk are taken
first, in whole numbers, and smoothed afterwards. A row of the disk is a run of pixels: the sum over a run is had by
adding two pixels to that of the next shorter one, so a disk takes one addition per row in place of one per pixel.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dign.core.pixels import whole_to_uint8
from dign.corruptions import linear

_FEW = 25  # weights of a kernel up to which exact sums matter: there, many results are whole numbers
_NOTHING = 1e-9  # weights below change nothing
_LARGEST_SUM = 2**15 // 128  # pixels that an int16 can add up, less 128 each


@lru_cache(maxsize=32)
def disk(radius: float, softness: float) -> np.ndarray:
    """The kernel of `defocus_blur`: (17,17) for radii up to 8, else (2 radius + 1, 2 radius + 1).

    The smoothing mirrors the disk at the edges of the kernel. Where the disk touches them (whole radii from 8 on) that
    adds to it: the published kernels sum to 1.0130 at radius 8 and to 1.0108 at radius 10, and brighten the image.
    """
    reach, half = _reaches(radius)
    offsets = np.arange(-reach, reach + 1)
    inside = (offsets[:, None] ** 2 + offsets**2 <= radius**2).astype(np.float64)
    window = _window(half, softness)
    smooth = np.zeros((inside.shape[0], inside.shape[0]))
    for tap, offset in enumerate(range(-half, half + 1)):
        rows = linear.border_index(np.arange(inside.shape[0]) + offset, inside.shape[0], "mirror")
        np.add.at(smooth, (np.arange(inside.shape[0]), rows), window[tap])
    kernel: np.ndarray = smooth @ (inside / inside.sum()) @ smooth.T
    return kernel


def _reaches(radius: float) -> tuple[int, int]:
    """How far the kernel reaches from its middle, and how far its smoothing does."""
    return (8, 1) if radius <= 8 else (int(radius), 2)


def _window(half: int, softness: float) -> np.ndarray:
    weights: np.ndarray = np.exp(-0.5 * (np.arange(-half, half + 1) / softness) ** 2)
    weights /= weights.sum()
    return weights


def correlate_with_disk(images: Tensor, radius: float, softness: float) -> Tensor:
    """Correlate every channel of (N,C,H,W) uint8 with `disk(radius, softness)`, mirrored at the borders; truncated.

    Small disks go the exact way, tap by tap. For others float32 has digits enough; a result that is a whole number in
    exact arithmetic stays one, because what is added at the end exceeds every rounding error.
    """
    kernel = disk(radius, softness)
    if np.count_nonzero(kernel > 0.5 / linear.ONE) <= _FEW:
        return linear.correlate(images, kernel, "mirror")
    reach, half = int(radius), _reaches(radius)[1]
    window = [float(weight) for weight in _window(half, softness)[half:]]
    halves = [math.isqrt(int(radius**2 - row**2)) for row in range(reach + 1)]
    pixels = 2 * sum(2 * half + 1 for half in halves) - (2 * halves[0] + 1)
    x = linear.pad(images, (reach + half + 1,) * 4, "mirror").to(torch.int16).sub_(128)
    total, gain = _smooth(_disk_sums(x, halves), window, 3), 1.0
    if _reaches(radius)[0] == radius:
        total.add_(_tips(x, halves, window, 2).mul_(window[1]))
        total = _smooth(total, window, 2).add_(_smooth(_tips(x, halves, window, 3), window, 3).mul_(window[1]))
        gain += window[1] * 8 * halves[reach - 1] / pixels
    else:
        total = _smooth(total, window, 2)
    return whole_to_uint8(total.mul_(1 / pixels).add_(128 * gain + 2.0**-12).clamp_(0, 255))


def _disk_sums(x: Tensor, halves: list[int]) -> Tensor:
    """Sums of (N,C,H,W) int16 over disks, float32, wherever a disk is inside with one pixel to spare.

    halves: how far the disk reaches to both sides, from its middle row outwards.
    """
    margin = len(halves)
    height, width = x.shape[-2] - 2 * margin, x.shape[-1] - 2 * margin
    columns = _shifts(x, 3, margin)
    run = columns(0).clone()
    total = torch.zeros(*x.shape[:2], height, width, device=x.device)
    part, counted = torch.zeros_like(total, dtype=torch.int16), 0
    for half in range(halves[0] + 1):
        if half:
            run.add_(columns(-half)).add_(columns(half))
        rows = _shifts(run, 2, margin)
        for offset in (
            sign * row for row, reached in enumerate(halves) if reached == half for sign in (1, -1)[: 1 + row]
        ):
            if counted + 2 * half + 1 > _LARGEST_SUM:
                total, counted = total.add_(part), 0
                part.zero_()
            part.add_(rows(offset))
            counted += 2 * half + 1
    return total.add_(part)


def _shifts(x: Tensor, dim: int, margin: int) -> Callable[[int], Tensor]:
    """x without margins at both ends of a dimension, as a function of how far to look to the side."""
    return lambda offset: x.narrow(dim, margin + offset, x.shape[dim] - 2 * margin)


def _smooth(x: Tensor, window: list[float], dim: int) -> Tensor:
    """Filter one axis with a symmetric window, given from its middle outwards; the result is smaller."""
    at = _shifts(x, dim, len(window) - 1)
    if window[1] < _NOTHING:
        return at(0)
    total = at(0) * window[0]
    for offset, weight in enumerate(window[1:], 1):
        total.add_((at(-offset) + at(offset)).mul_(weight))
    return total


def _tips(x: Tensor, halves: list[int], window: list[float], along: int) -> Tensor:
    """What mirroring adds where the disk touches the edges of its kernel, at two of its tips, before it is smoothed.

    The line beyond a tip is dropped, and the line at the tip takes the smoothing of its inner neighbor a second time.
    (What the lines further in have of it, a hundred thousandth, is left out.) The lines lie `along` a dimension.
    """
    reach, margin = len(halves) - 1, len(halves) - 1 + len(window)
    near = _shifts(x, along, len(halves))
    run = near(0).clone()
    for half in range(1, halves[reach - 1] + 1):
        run.add_(near(-half)).add_(near(half))
    inner, outer = _shifts(run, 5 - along, margin), _shifts(near(0), 5 - along, margin)
    return (inner(reach) + inner(-reach)).sub_(outer(reach + 1)).sub_(outer(-reach - 1)).to(torch.float32)
