"""The five blurs."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dign.core.pixels import whole_to_uint8
from dign.corruptions import linear
from dign.corruptions.defocus import correlate_with_disk
from dign.corruptions.streams import Streams

_LARGEST_OPERATOR = 64 * 64  # pixels of an image up to which all zooms are done as one sparse matrix


def gaussian_blur(images: Tensor, sigma: float, streams: Streams) -> Tensor:
    """A Gaussian filter cut off at four sigma. Images and result (N,C,H,W) uint8, as everywhere below."""
    return linear.gaussian_blur(images, sigma)


def defocus_blur(images: Tensor, setting: tuple[float, float], streams: Streams) -> Tensor:
    """A disk of the given radius with edges softened by a small Gaussian."""
    return correlate_with_disk(images, *setting)


def zoom_blur(images: Tensor, setting: dict[str, Any], streams: Streams) -> Tensor:
    """The mean of the image and of its zooms; the zoom by 1 is among them, so the image counts twice."""
    start = setting["start"]
    step = (start + setting["step"]) - start  # its last bit decides some of the roundings inside a zoom
    factors = tuple(start + step * number for number in range(setting["count"]))
    if images.shape[-2] * images.shape[-1] > _LARGEST_OPERATOR:
        return linear.zoom_mean(images, factors)
    operator = linear.zoom_mean_operator(*images.shape[-2:], factors, images.device)
    return linear.apply_operator(operator, images)


def motion_blur(images: Tensor, setting: tuple[float, float], streams: Streams) -> Tensor:
    """Blur each image along a line of its own, at most 45 degrees from the horizontal."""
    degrees = streams.uniform(1)[:, 0] * 90 - 45
    return blur_along_lines(images, *setting, degrees)


def blur_along_lines(images: Tensor, radius: float, sigma: float, degrees: Tensor) -> Tensor:
    """One-sided Gaussian line blur, borders clamped; images (N,C,H,W) uint8, an angle for each (N,).

    Sample i of a line is the pixel at the whole offset (ceil(i cos a - 1/2), ceil(i sin a - 1/2)) in (x, y).
    """
    weights = _line_weights(radius, sigma)
    steps = torch.arange(len(weights), dtype=torch.float64, device=images.device)
    angle = torch.deg2rad(degrees.to(torch.float64))[:, None]
    across = (steps * angle.cos() - 0.5).ceil().to(torch.int64)
    down = (steps * angle.sin() - 0.5).ceil().to(torch.int64)
    rows, start = _rows_of_padded(images, len(weights) - 1)
    stride = images.shape[-1] + 2 * (len(weights) - 1)
    shift = (down * stride + across).repeat_interleave(images.shape[1], dim=0)
    total = torch.zeros((start.numel(), images.shape[-1]), dtype=torch.float32, device=images.device)
    for step, weight in enumerate(weights):
        total.add_(rows.index_select(0, (start + shift[:, step, None]).flatten()), alpha=weight)
    return whole_to_uint8(total.mul_(1 / linear.ONE)).view(images.shape)


def _rows_of_padded(images: Tensor, margin: int) -> tuple[Tensor, Tensor]:
    """Padded images as a table of all runs of W values, and (N*C,H) the run at which each image row starts."""
    count, (height, width) = images.shape[0] * images.shape[1], images.shape[-2:]
    padded = linear.pad(images, (margin,) * 4, "nearest").to(torch.float32).contiguous()
    rows = padded.as_strided((padded.numel() - width + 1, width), (1, 1))
    plane, stride = padded.shape[-1] * padded.shape[-2], padded.shape[-1]
    planes = torch.arange(count, device=images.device)[:, None] * plane
    lines = (torch.arange(height, device=images.device) + margin) * stride + margin
    return rows, planes + lines


@lru_cache(maxsize=32)
def _line_weights(radius: float, sigma: float) -> tuple[float, ...]:
    """The fixed-point weights along a line, without the zeros at its end."""
    steps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    weights = linear.fixed_point(weights / weights.sum())
    return tuple(float(weight) for weight in weights[: int(np.nonzero(weights)[0].max()) + 1])


def glass_blur(images: Tensor, setting: tuple[float, int, int], streams: Streams) -> Tensor:
    """Blur, let every pixel take the value of a random neighbor, `rounds` times over, and blur again.

    The published scan goes through the pixels one after the other, from the last row and column backwards, so a
    pixel may copy a neighbor that has itself been replaced before. Which pixel's value each one ends up with is
    found for all pixels at once by following these chains (`_sources`), without the scan.
    """
    sigma, reach, rounds = setting
    images = linear.gaussian_blur(images, sigma)
    source = _sources(images.shape[-2:], reach, streams)
    for _ in range(rounds - 1):
        source = source.gather(1, _sources(images.shape[-2:], reach, streams))
    moved = images.flatten(2).gather(2, source[:, None].expand(-1, images.shape[1], -1))
    return linear.gaussian_blur(moved.view(images.shape), sigma)


def _sources(size: Sequence[int], reach: int, streams: Streams) -> Tensor:
    """(N,H*W) the pixel whose value each pixel has after one scan.

    Only pixels with row in reach+1..H-reach and column in reach+1..W-reach are replaced, by the one at a uniform
    offset in {-reach..reach-1}^2. If that one comes later in the order of pixels it was itself replaced before, and
    the chain goes on from there; else it still holds its own value, and the chain ends.
    """
    height, width = size
    rows, columns = range(reach + 1, height - reach + 1), range(reach + 1, width - reach + 1)
    own = torch.arange(height * width, device=streams.device).repeat(len(streams), 1)
    if not rows or not columns:
        return own
    bits = streams.bits(len(rows) * len(columns)).view(-1, len(rows), len(columns))
    down = (bits & 0xFFFF).mul_(2 * reach).bitwise_right_shift_(16).sub_(reach)
    across = bits.bitwise_right_shift_(16).bitwise_and_(0xFFFF).mul_(2 * reach).bitwise_right_shift_(16).sub_(reach)
    row, column = (torch.arange(s.start, s.stop, dtype=torch.int32, device=own.device) for s in (rows, columns))
    scanned = row[:, None] * width + column
    offset = (down * width).add_(across)
    target = scanned + offset

    def replace_scanned(values: Tensor) -> Tensor:
        pixels = own.clone()
        pixels.view(-1, height, width)[:, rows.start : rows.stop, columns.start : columns.stop] = values
        return pixels

    if reach == 1:  # offsets of -1 and 0 only lead to pixels that have not been replaced yet
        return replace_scanned(target)
    down.add_(row[:, None])
    across.add_(column)
    later = (offset > 0) & (down < rows.stop) & (across >= columns.start) & (across < columns.stop)
    return replace_scanned(target).gather(1, _chain_ends(replace_scanned(torch.where(later, target, scanned))))


def _chain_ends(links: Tensor) -> Tensor:
    """Follow links (N,P) between P pixels to those that link to themselves.

    Every step doubles the length of chain that a link spans. Links go to later pixels only, so no chain is longer than
    there are pixels; where asking costs nothing, on the CPU, the search ends when nothing changes.
    """
    for _ in range(links.shape[1].bit_length()):
        followed = links.gather(1, links)
        if links.device.type == "cpu" and torch.equal(followed, links):
            break
        links = followed
    return links
