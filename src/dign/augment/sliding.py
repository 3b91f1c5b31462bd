"""Rows of images slid sideways, each by its own distance: what shifts and shears consist of.

A row that is slid is a window over the pixels in memory that begins somewhere else. To copy windows takes a tenth of
the time of sampling the image at every pixel. Images are uint8 (N,C,H,W); outside they are black.
"""

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.pixels import NUDGE, whole_to_uint8


def translate(images: Tensor, columns: Tensor, rows: Tensor) -> Tensor:
    """Shift by whole pixels: the output at (column, row) is the image at (column + columns, row + rows), each (N,).

    >>> row = torch.tensor([[[[1, 2, 3]]]], dtype=torch.uint8)
    >>> translate(row, torch.tensor([1]), torch.tensor([0]))
    tensor([[[[2, 3, 0]]]], dtype=torch.uint8)
    """
    height, width = images.shape[-2:]
    source = torch.arange(height, device=images.device) + rows.long()[:, None]
    outside = (source < 0) | (source >= height)
    distance = columns.long()[:, None].masked_fill(outside, width)
    moved = _windows(images, source.clamp(0, height - 1), distance, width)
    return moved.mul_(_inside(distance, width))


def shear_x(images: Tensor, slopes: Tensor) -> Tensor:
    """The output at (column, row) is the image at (column + slope * row, row), interpolated linearly; slopes are (N,).

    As in PIL, rows count from the upper edge of the image, values are cut down to whole levels, and the image is cut
    off sharply at its border.

    >>> shear_x(torch.tensor([[[[8, 4], [8, 4]]]], dtype=torch.uint8), torch.tensor([0.5]))
    tensor([[[[7, 4],
              [5, 0]]]], dtype=torch.uint8)
    """
    height, width = images.shape[-2:]
    row = torch.arange(height, device=images.device)
    distance = slopes[:, None] * (row.to(slopes.dtype) + 0.5)
    whole = distance.floor()
    edged = torch.cat((images[..., :1], images, images[..., -1:]), dim=-1)  # at the border the edge goes on
    values = _windows(edged, row.expand(len(images), -1), whole.long() + 1, width + 1).float()
    between = torch.lerp(values[..., :-1], values[..., 1:], (distance - whole)[:, None, :, None])
    return whole_to_uint8(between.add_(NUDGE)).mul_(_inside((distance + 0.5).floor().long(), width))


def shear_y(images: Tensor, slopes: Tensor) -> Tensor:
    """The output at (column, row) is the image at (column, row + slope * column): `shear_x` for columns.

    >>> shear_y(torch.tensor([[[[8, 8], [4, 4]]]], dtype=torch.uint8), torch.tensor([0.5]))
    tensor([[[[7, 5],
              [4, 0]]]], dtype=torch.uint8)
    """
    return shear_x(images.mT, slopes).mT.contiguous()


def _windows(images: Tensor, row: Tensor, distance: Tensor, width: int) -> Tensor:
    """For every output row (N,H), so many pixels of the source row `row`, from the column `distance` on: (N,C,H,width).

    What lies beyond that row is arbitrary.
    """
    count, channels, height, stride = images.shape
    pixels = functional.pad(images.flatten(), (stride, stride))
    planes = torch.arange(count * channels, device=images.device).view(count, channels, 1)
    first = (planes * height + row[:, None] + 1) * stride + distance.clamp(-stride, stride)[:, None]
    windows = pixels.as_strided((len(pixels) - width + 1, width), (1, 1))
    return windows.index_select(0, first.flatten()).view(*first.shape, width)


def _inside(distance: Tensor, width: int) -> Tensor:
    """1 where column + distance (N,H) is one of an image so wide, else 0: uint8 (N,1,H,width)."""
    line = functional.pad(torch.ones(width, dtype=torch.uint8, device=distance.device), (width, width))
    windows = line.as_strided((2 * width + 1, width), (1, 1))
    inside = windows.index_select(0, distance.clamp(-width, width).flatten() + width)
    return inside.view(*distance.shape, width)[:, None]
