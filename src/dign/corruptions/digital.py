"""The five digital corruptions."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from dign.core.pixels import divide, to_float, truncate_to_uint8, whole_to_uint8
from dign.core.placement import copy_to_device
from dign.corruptions import linear
from dign.corruptions.color import recolor
from dign.corruptions.jpeg import jpeg
from dign.corruptions.streams import Streams


def contrast(images: Tensor, factor: float, streams: Streams) -> Tensor:
    """(x - mean) * factor + mean, with the mean of each channel. Images and result (N,C,H,W) uint8, as below."""
    pixels = images.shape[-2] * images.shape[-1]
    total = images.sum(dim=(2, 3), keepdim=True, dtype=torch.int64).to(torch.float64)
    mean = divide(total, pixels * 255)
    x = to_float(images, torch.float64)
    return truncate_to_uint8(x.sub_(mean).mul_(factor).add_(mean))


def saturate(images: Tensor, setting: tuple[float, float], streams: Streams) -> Tensor:
    """HSV saturation * scale + shift. Grayscale images have no saturation and are returned as they are."""
    return images if images.shape[1] == 1 else recolor(images, saturation=(setting[0], setting[1]))


def jpeg_compression(images: Tensor, quality: int, streams: Streams) -> Tensor:
    """JPEG at the given quality and back: equal to writing and reading a file, without either."""
    return jpeg(images, quality)


def pixelate(images: Tensor, fraction: float, streams: Streams) -> Tensor:
    """Box-filter each side down to int(side * fraction), and back up, which repeats values."""
    height, width = images.shape[-2:]
    small_height, small_width = int(height * fraction), int(width * fraction)
    planes = images.shape[0] * images.shape[1]
    for side in (2, 4):
        if (height, width) == (side * small_height, side * small_width):
            return _pixelate_squares(images.reshape(planes, height, width), side).view(images.shape)
    x = torch.empty((planes, height + 1, width + 1), device=images.device)
    x[:, :-1, :-1] = images.reshape(planes, height, width)
    for edge in (x[:, -1], x[:, :, -1]):
        edge.zero_()  # what windows of fewer places read
    x = _box_means(x.view(-1, width + 1), *_box_windows(width, small_width, images.device)).floor_()
    x = _box_means(x.view(planes, height + 1, -1), *_box_windows(height, small_height, images.device))
    columns = _nearest(width, small_width, images.device)
    x = whole_to_uint8(x.view(-1, small_width).index_select(1, columns)).view(planes, small_height, width)
    return x.index_select(1, _nearest(height, small_height, images.device)).view(images.shape)


def _pixelate_squares(x: Tensor, side: int) -> Tensor:
    """Squares of 2x2 or 4x4 pixels of (N,H,W) uint8. One of their rows is a word, whose bytes are added up."""
    words = x.contiguous().clone().view(torch.int16 if side == 2 else torch.int32)
    total = words & 0xFF
    for shift in range(8, 8 * side, 8):
        total.add_(words.bitwise_right_shift(shift).bitwise_and_(0xFF))
    means = total.add_(side // 2).bitwise_right_shift_(side.bit_length() - 1)
    total = sum((means[:, row::side] for row in range(1, side)), start=means[:, ::side])
    means = total.add_(side // 2).bitwise_right_shift_(side.bit_length() - 1)
    repeated = means.mul_(0x0101 if side == 2 else 0x01010101).view(torch.uint8)
    return repeated[:, :, None].expand(-1, -1, side, -1).reshape(x.shape)


def _box_means(x: Tensor, places: Tensor, weights: Tensor) -> Tensor:
    """Means plus 1/2, to be rounded down, of whole numbers (N,W) or (N,H,W) over windows of dimension 1; float32."""
    total = x.index_select(1, places[0])
    for tap in places[1:]:
        total.add_(x.index_select(1, tap))
    return total.mul_(weights if x.dim() == 2 else weights[:, None]).add_(0.5)


@lru_cache(maxsize=32)
def _box_windows(size: int, small: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Windows of size/small places: (n,small) the places of each, `size` where it has fewer, and (small,) weights.

    A place belongs to a window if its center lies inside; the upper end is inside, the lower one is not. Where a center
    lies right at an end, rounding errors decide: so the order of operations is Pillow's, and so are weights in steps of
    2^-22. In float32 their products with sums of a few bytes are rounded, but never across a half.
    """
    scale = size / small
    places = np.arange(size)
    center = (np.arange(small)[:, None] + 0.5) * scale
    first, last = (np.trunc(center + side * 0.5 * scale + 0.5) for side in (-1, 1))
    offset = (places - center + 0.5) * (1.0 / scale)
    inside = (offset > -0.5) & (offset <= 0.5) & (places >= first) & (places < last)
    counts = inside.sum(axis=1)
    taps = np.argsort(~inside, axis=1, kind="stable")[:, : counts.max()]
    taps[np.arange(counts.max()) >= counts[:, None]] = size
    weights = np.floor(1 / counts * 2**22 + 0.5) / 2**22
    return torch.from_numpy(taps.T.copy()).to(device), torch.from_numpy(weights).to(device, torch.float32)


@lru_cache(maxsize=32)
def _nearest(size: int, small: int, device: torch.device) -> Tensor:
    """For each of `size` places the one of `small` that covers its center."""
    return torch.from_numpy(((np.arange(size) + 0.5) * (small / size)).astype(np.int64)).to(device)


def elastic_transform(images: Tensor, setting: tuple[float, float, float], streams: Streams) -> Tensor:
    """A small random affine map, then random smooth displacements of every pixel.

    setting: (alpha, sigma, shift): three points are moved by U(-shift, shift) each; displacements are
    alpha * (U(-1,1) noise blurred by sigma).
    """
    alpha, sigma, shift = setting
    x = images.to(torch.float32)
    x = _sample(x, *_affine_positions(x.shape[-2:], shift, streams), border="mirror")
    if alpha:
        down, across = _displacements(x.shape[-2:], alpha, sigma, streams)
        x = _sample(x, down, across, border="reflect")
    return whole_to_uint8(x.clamp_(0, 255))


def _affine_positions(size: Sequence[int], shift: float, streams: Streams) -> tuple[Tensor, Tensor]:
    """Where each pixel of the result is read: rows and columns (N,H,W) float64, in steps of 1/32 pixel.

    The map takes three corners of a square around the center, p0 = c + (s,s), p1 = c + (s,-s), p2 = c - (s,s) in
    (x,y), to q = p + U(-shift, shift); the result is read at its inverse.
    """
    height, width = size
    half = min(height, width) // 3
    middle = torch.tensor([width // 2, height // 2], dtype=torch.float64)
    around = torch.tensor([[1, 1], [1, -1], [-1, -1]], dtype=torch.float64) * half
    center, corners = copy_to_device(middle, streams.device), copy_to_device(around, streams.device)
    moved = corners + (streams.uniform(6).view(-1, 3, 2) * 2 - 1).to(torch.float64) * shift
    along_x, along_y = divide(moved[:, 1] - moved[:, 2], 2 * half), divide(moved[:, 0] - moved[:, 1], 2 * half)
    determinant = along_x[:, 0] * along_y[:, 1] - along_x[:, 1] * along_y[:, 0]
    y = torch.arange(height, device=streams.device).view(1, -1, 1) - (center[1] + moved[:, 1, 1]).view(-1, 1, 1)
    x = torch.arange(width, device=streams.device).view(1, 1, -1) - (center[0] + moved[:, 1, 0]).view(-1, 1, 1)
    a, b, c, d = (
        (part / determinant).view(-1, 1, 1) for part in (along_x[:, 0], along_y[:, 0], along_x[:, 1], along_y[:, 1])
    )
    columns = x * d - y * b + (center[0] + half)
    rows = y * a - x * c + (center[1] - half)
    return rows.mul_(32).round_().div_(32), columns.mul_(32).round_().div_(32)


def _displacements(size: Sequence[int], alpha: float, sigma: float, streams: Streams) -> tuple[Tensor, Tensor]:
    height, width = size
    steps = streams.bits(2 * height * width).bitwise_and_(0xFFFF).mul_(2).sub_(65535)
    noise = steps.view(-1, 2, height, width).to(torch.float64).mul_(2.0**-16)
    across, down = linear.gaussian_filter(noise, sigma, border="reflect", truncate=3.0).mul_(alpha).unbind(1)
    rows = torch.arange(height, device=streams.device).view(-1, 1)
    return down + rows, across + torch.arange(width, device=streams.device)


def _sample(x: Tensor, rows: Tensor, columns: Tensor, border: str) -> Tensor:
    """Read (N,C,H,W) at fractional positions (N,H,W), linearly; beyond the edges as `linear.border_index` says."""
    height, width = x.shape[-2:]
    mirror = border == "mirror"
    if mirror:
        grid = torch.stack([columns * (2 / (width - 1)) - 1, rows * (2 / (height - 1)) - 1], dim=-1)
    else:
        grid = torch.stack([divide(columns * 2 + 1, width) - 1, divide(rows * 2 + 1, height) - 1], dim=-1)
    return F.grid_sample(x, grid.to(x.dtype), mode="bilinear", padding_mode="reflection", align_corners=mirror)
