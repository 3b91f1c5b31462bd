"""What the patterns share: places of pixels, and a few random numbers for every image."""

import torch
from torch import Tensor

from dign.corruptions.streams import Streams


def pixel_places(images: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (1,H,1) and columns (1,1,W) of the pixels of (N,C,H,W), float64."""
    height, width = images.shape[-2:]
    rows = torch.arange(height, dtype=torch.float64, device=images.device).view(1, -1, 1)
    return rows, torch.arange(width, dtype=torch.float64, device=images.device).view(1, 1, -1)


def draw_uniform(streams: Streams, count: int) -> tuple[Tensor, ...]:
    """`count` numbers in (0,1) for every image, each (N,1,1) float64."""
    return tuple(part.view(-1, 1, 1) for part in streams.uniform(count).to(torch.float64).unbind(1))
