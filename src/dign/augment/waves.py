"""Planar waves added to images (AFA, Vaish et al., 2024)."""

import math

import torch
from torch import Tensor

from dign.core.image_rng import uniform

ORIENTATIONS = 448
"""Directions of waves, evenly spaced over half a turn."""


def add_waves(x: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Add one wave of a random frequency, direction and strength to each channel of each image, clipped to [0,1].

    Args:
        x: Images (N,C,H,W) in [0,1].
        strength: Mean of the waves' strength, which is exponentially distributed: 32 times the root mean square.
        generator: The source of all random numbers, on the device of `x`.

    >>> add_waves(torch.full((2, 3, 8, 8), 0.5), 10.0).shape
    torch.Size([2, 3, 8, 8])
    """
    draw = uniform(*x.shape[:2], 3, generator=generator, device=x.device, dtype=torch.float32)
    side = max(x.shape[-2:])
    frequency = 1 + (draw[..., 0] * side).floor().clamp(max=side - 1)
    angle = -math.pi / (ORIENTATIONS - 1) * (draw[..., 1] * ORIENTATIONS).floor().clamp(max=ORIENTATIONS - 1)
    drawn_strength = -strength * torch.log1p(-draw[..., 2])
    return (x + waves(frequency, angle, drawn_strength, x.shape[-2:]).to(x.dtype)).clamp_(0, 1)


def waves(frequency: Tensor, angle: Tensor, strength: Tensor, image_size: tuple[int, int] | torch.Size) -> Tensor:
    """sin(2 pi f (r cos a + c sin a) - pi / 4), scaled to a root mean square of strength / 32.

    r and c are row and column from the center, as a fraction of the image's longer side.

    Args:
        frequency: Cycles per image (N,C); beyond half the side they appear as lower ones, as published.
        angle: Directions a (N,C).
        strength: (N,C).
        image_size: Height and width.

    Returns:
        (N,C,H,W).

    >>> wave = waves(torch.ones(1, 1), torch.zeros(1, 1), torch.full((1, 1), 3.2), (8, 8))
    >>> round(wave.square().mean().sqrt().item(), 4)
    0.1
    """
    longest = max(image_size)
    # Ends included: from -1/2 to 1/2 over the longer side.
    row, column = (
        (torch.arange(size, device=frequency.device, dtype=torch.float32) / max(size - 1, 1) - 0.5) * (size / longest)
        for size in image_size
    )
    turns = (2 * math.pi * frequency)[..., None, None]
    across, down = angle.cos()[..., None, None], angle.sin()[..., None, None]
    wave = (turns * (across * row[:, None] + down * column) - math.pi / 4).sin_()
    size = wave.square().mean((-2, -1), keepdim=True).sqrt_().clamp_(min=1e-6)
    return wave.mul_(strength[..., None, None] / 32 / size)
