"""Rectangles in images, a different one for each."""

from collections.abc import Sequence

import torch
from torch import Tensor


def box_masks(first: Tensor, last: Tensor, image_size: Sequence[int]) -> Tensor:
    """Where the boxes are: True from the corner `first` up to the corner `last`, which is outside.

    Args:
        first: Row and column of the upper left corners (N,2); they may be outside the image.
        last: Row and column just beyond the lower right corners (N,2).
        image_size: Height and width.

    Returns:
        Bools (N,1,H,W).

    >>> box_masks(torch.tensor([[-1, 1]]), torch.tensor([[1, 3]]), (2, 3)).int()[0, 0]
    tensor([[0, 1, 1],
            [0, 0, 0]], dtype=torch.int32)
    """
    inside = []
    for axis, size in enumerate(image_size):
        place = torch.arange(size, device=first.device)
        inside.append((place >= first[:, axis, None]) & (place < last[:, axis, None]))
    return inside[0][:, None, :, None] & inside[1][:, None, None, :]


def draw_centers(draw: Tensor, image_size: Sequence[int]) -> Tensor:
    """A pixel (row, column), any with the same probability, for numbers (N,2) in [0,1): floats (N,2).

    >>> draw_centers(torch.tensor([[0.0, 0.99]]), (8, 32)).tolist()
    [[0.0, 31.0]]
    """
    return torch.stack([(draw[:, axis] * size).floor().clamp(max=size - 1) for axis, size in enumerate(image_size)], 1)
