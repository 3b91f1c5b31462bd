"""Affine warps of whole batches, a different one for each image, in pixel units.

A warp is given by matrices (N,2,3) that lead from output to source positions: with u = (column, row) measured
in pixels from the image's center, the output at u is the image at A u + b, where matrices = [A | b].
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


def warp(x: Tensor, matrices: Tensor, *, mode: str) -> Tensor:
    """Warp each image by its own affine map; outside the image it is black.

    Args:
        x: Float images (N,C,H,W).
        matrices: Affine maps (N,2,3), as the module describes.
        mode: "bilinear" or "nearest".

    >>> warp(torch.tensor([[[[1.0, 2.0, 3.0]]]]), shift(torch.ones(1), torch.zeros(1)), mode="nearest")
    tensor([[[[2., 3., 0.]]]])
    """
    return sample(x, source_positions(matrices.to(x.dtype), x.shape[-2:]), mode=mode)


def source_positions(matrices: Tensor, image_size: Sequence[int]) -> Tensor:
    """Where each output pixel comes from: (N,H,W,2), column and row, with the image's edges at -1 and 1.

    >>> source_positions(rotation(torch.zeros(1)), (1, 2))
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    height, width = image_size
    a = matrices[..., None]
    column, row = (torch.arange(size, device=a.device, dtype=a.dtype) - (size - 1) / 2 for size in (width, height))
    positions = a.new_empty(len(a), height, width, 2)
    for axis, size in enumerate((width, height)):  # the sum of a term per column and a term per row
        per_column = (a[:, axis, 0] * column + a[:, axis, 2]) * (2 / size)
        per_row = (a[:, axis, 1] * row) * (2 / size)
        torch.add(per_column[:, None, :], per_row[:, :, None], out=positions[..., axis])
    return positions


def sample(x: Tensor, positions: Tensor, *, mode: str = "bilinear", padding: str = "zeros") -> Tensor:
    """Sample images (N,C,H,W) at positions (N,H,W,2); outside they are black ("zeros") or as at the edge ("border").

    >>> sample(torch.tensor([[[[1.0, 3.0]]]]), torch.zeros(1, 1, 1, 2))
    tensor([[[[2.]]]])
    """
    return functional.grid_sample(x, positions, mode=mode, padding_mode=padding, align_corners=False)


def rotation(degrees: Tensor) -> Tensor:
    """Matrices of counterclockwise rotations about the center, by angles (N,).

    >>> rotation(torch.zeros(1))
    tensor([[[1., -0., 0.],
             [0., 1., 0.]]])
    """
    angle = torch.deg2rad(degrees)
    cosine, sine, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    return _matrices(cosine, -sine, zero, sine, cosine, zero)


def shift(columns: Tensor, rows: Tensor) -> Tensor:
    """Matrices of shifts: the output at (column, row) is the image at (column + columns, row + rows), each (N,).

    >>> shift(torch.tensor([2.0]), torch.tensor([-1.0]))
    tensor([[[ 1.,  0.,  2.],
             [ 0.,  1., -1.]]])
    """
    one, zero = torch.ones_like(columns), torch.zeros_like(columns)
    return _matrices(one, zero, columns, zero, one, rows)


def shear(across: Tensor, down: Tensor, image_size: Sequence[int]) -> Tensor:
    """Matrices of shears: the output at (column, row) is the image at (column + across * row, row + down * column).

    Columns and rows count from the top left corner of the image here, as in PIL's affine transform, so a shear leaves
    the upper (or left) edge where it is.

    >>> shear(torch.tensor([0.5]), torch.tensor([0.0]), (4, 4))
    tensor([[[1.0000, 0.5000, 1.0000],
             [0.0000, 1.0000, 0.0000]]])
    """
    height, width = image_size
    one = torch.ones_like(across)
    return _matrices(one, across, across * (height / 2), down, one, down * (width / 2))


def _matrices(*entries: Tensor) -> Tensor:
    rows: Tensor = torch.stack(entries, dim=-1).unflatten(-1, (2, 3))
    return rows
