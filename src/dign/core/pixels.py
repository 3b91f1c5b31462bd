"""From 8-bit levels to numbers in [0,1], the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor


def unit_scale(images: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """uint8 / 255."""
    return divided(images.to(dtype), 255)


def divided(x: Tensor, divisor: float) -> Tensor:
    """x / divisor in place, rounded as IEEE 754 has it.

    A tensor divides: with a number of Python's, CUDA multiplies by its rounded inverse instead, and what is truncated
    to 8 bits afterwards comes out a level lower here and there.
    """
    return x.div_(torch.full((), divisor, dtype=x.dtype, device=x.device))
