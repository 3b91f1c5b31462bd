"""Conversion of pixels between uint8, as they are stored, and float in [0,1]: the same on every device."""

from __future__ import annotations

import torch
from torch import Tensor

from dign.core.errors import UserError

NUDGE = 1e-3
"""Added to values that are then cut down to whole levels: one that should be whole may be a rounding error below."""


def to_float(images: Tensor, dtype: torch.dtype = torch.float32, *, channels_last: bool = False) -> Tensor:
    """Images as float in [0,1]: uint8 is divided by 255, float is taken to be in [0,1] already.

    Args:
        images: (N,C,H,W) or (C,H,W), uint8 or float. They are never written to.
        dtype: Type of the result.
        channels_last: Lay the result out with the channels last, which is faster for most networks.

    Raises:
        UserError: The images are neither uint8 nor float.

    >>> to_float(torch.tensor([[[0, 51, 255]]], dtype=torch.uint8))
    tensor([[[0.0000, 0.2000, 1.0000]]])
    """
    if images.dtype == torch.uint8:
        x = divide(images.to(dtype), 255)
    elif images.is_floating_point():
        x = images.to(dtype)
    else:
        raise UserError(f"images must be uint8, or float in [0,1], not {images.dtype}.")
    return x.contiguous(memory_format=torch.channels_last) if channels_last else x


def to_uint8(images: Tensor) -> Tensor:
    """Float images in [0,1] rounded to the nearest of the 256 levels, in a new tensor.

    >>> to_uint8(torch.tensor([0.0, 0.2, 1.0]))
    tensor([  0,  51, 255], dtype=torch.uint8)
    """
    return whole_to_uint8(images.mul(255).round_().clamp_(0, 255))


def truncate_to_uint8(images: Tensor) -> Tensor:
    """Float images clipped to [0,1] and rounded down to one of the 256 levels, as the published corruptions do it.

    >>> truncate_to_uint8(torch.tensor([-0.1, 0.5, 1.2]))
    tensor([  0, 127, 255], dtype=torch.uint8)
    """
    return whole_to_uint8(images.clamp(0, 1).mul_(255))


def whole_to_uint8(values: Tensor) -> Tensor:
    """Values from 0 to 255, of any type, as uint8; fractions are cut off.

    By way of int16, for which the CPU has instructions: from float to uint8 takes three times as long.

    >>> whole_to_uint8(torch.tensor([0.0, 2.9, 255.0]))
    tensor([  0,   2, 255], dtype=torch.uint8)
    """
    return values.to(torch.int16).to(torch.uint8)


def divide(x: Tensor, divisor: float) -> Tensor:
    """x / divisor, rounded as IEEE 754 has it.

    The divisor is made a tensor: given a Python number, CUDA multiplies by its rounded inverse instead, and what is
    truncated to 8 bits afterwards comes out a level lower here and there.
    """
    return x / torch.full((), divisor, dtype=x.dtype, device=x.device)
