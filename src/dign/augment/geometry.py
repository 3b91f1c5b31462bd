"""Affine warps of whole batches, a different one for each image, in pixel units.

A warp is given by matrices (N,2,3) that lead from output to source positions: with u = (column, row) measured
in pixels from the image's center, the output at u is the image at A u + b, where matrices = [A | b].
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def warp(x: Tensor, matrices: Tensor, *, mode: str = "bilinear") -> Tensor:
    """Each image (N,C,H,W) as seen through its own affine map; what lies outside the image is black.

    `mode` is "bilinear" or "nearest".
    """
    return sample(x, source_positions(matrices.to(x.dtype), x.shape[-2:]), mode=mode)


def source_positions(matrices: Tensor, image_size: Sequence[int]) -> Tensor:
    """Where each output pixel comes from: (N,H,W,2), column and row, with the image's edges at -1 and 1."""
    height, width = image_size
    a = matrices[..., None]
    column, row = (torch.arange(size, device=a.device, dtype=a.dtype) - (size - 1) / 2 for size in (width, height))
    positions = a.new_empty(len(a), height, width, 2)
    for axis, size in enumerate((width, height)):  # the sum of a part per column and a part per row, written once
        per_column = (a[:, axis, 0] * column + a[:, axis, 2]) * (2 / size)
        per_row = (a[:, axis, 1] * row) * (2 / size)
        torch.add(per_column[:, None, :], per_row[:, :, None], out=positions[..., axis])
    return positions


def sample(x: Tensor, positions: Tensor, *, mode: str = "bilinear", padding: str = "zeros") -> Tensor:
    """The images at the given positions; beyond their edge they are black ("zeros") or go on as there ("border")."""
    return functional.grid_sample(x, positions, mode=mode, padding_mode=padding, align_corners=False)


def rotation(degrees: Tensor) -> Tensor:
    """Counter-clockwise turns (N,) about the center."""
    angle = torch.deg2rad(degrees)
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    return _matrices(cosine, -sine, zero, sine, cosine, zero)


def shift(columns: Tensor, rows: Tensor) -> Tensor:
    """The output at (column, row) is the image at (column + columns, row + rows), each (N,)."""
    one, zero = torch.ones_like(columns), torch.zeros_like(columns)
    return _matrices(one, zero, columns, zero, one, rows)


def shear(across: Tensor, down: Tensor, image_size: Sequence[int]) -> Tensor:
    """The output at (column, row) is the image at (column + across * row, row + down * column), each (N,).

    Columns and rows count from the top left corner of the image here, as in PIL's affine transform, so a shear
    leaves the upper (or left) edge where it is.
    """
    height, width = image_size
    one = torch.ones_like(across)
    return _matrices(one, across, across * (height / 2), down, one, down * (width / 2))


def _matrices(*entries: Tensor) -> Tensor:
    rows: Tensor = torch.stack(entries, dim=-1).unflatten(-1, (2, 3))
    return rows
