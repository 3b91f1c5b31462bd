"""Affine warps of whole batches, a different one for each image, in pixel units."""

import torch
from torch import Tensor
from torch.nn import functional


def warp(x: Tensor, matrices: Tensor, *, mode: str = "bilinear") -> Tensor:
    """Each image as seen through its own affine map; what lies outside the image is black.

    x: (N,C,H,W). matrices: (N,2,3), from output to source positions: with u = (column, row) measured in pixels
    from the image's centre, the output at u is the image at A u + b, matrices = [A | b]. `mode` is "bilinear"
    or "nearest".
    """
    height, width = x.shape[-2:]
    a = matrices.to(x.dtype)[..., None]
    column, row = _centred(width, x), _centred(height, x)
    grid = x.new_empty(len(x), height, width, 2)
    for axis, size in enumerate((width, height)):  # the sum of a part per column and a part per row, written once
        per_column = (a[:, axis, 0] * column + a[:, axis, 2]) * (2 / size)
        per_row = (a[:, axis, 1] * row) * (2 / size)
        torch.add(per_column[:, None, :], per_row[:, :, None], out=grid[..., axis])
    return functional.grid_sample(x, grid, mode=mode, padding_mode="zeros", align_corners=False)


def _centred(size: int, like: Tensor) -> Tensor:
    """Positions 0..size-1 measured from the middle."""
    return torch.arange(size, device=like.device, dtype=like.dtype) - (size - 1) / 2
