"""Position embeddings of vision transformers, resampled for images of another size than the weights were trained on."""

from __future__ import annotations

from math import isqrt

from torch import Tensor
from torch.nn import functional

NAMES = ("pos_embed", "pos_embedding", "relative_position_bias_table")
"""What timm and torchvision call them."""
MOST_EXTRA = 5
"""Tokens in front of those of the image that a transformer may have: of the class, of distillation, registers."""


def resample_positions(name: str, found: Tensor, shape: tuple[int, ...]) -> Tensor | None:
    """The position embeddings of one square grid for another, bicubically; None where the tensor is something else.

    Args:
        name: The tensor's name: the last part says whether it is one.
        found: (1,extra+h*h,C), or a table (h*h,C) of relative positions.
        shape: The shape that is wanted.

    >>> import torch
    >>> resample_positions("encoder.pos_embedding", torch.ones(1, 1 + 14 * 14, 8), (1, 1 + 10 * 10, 8)).shape
    torch.Size([1, 101, 8])
    >>> resample_positions("head.weight", torch.ones(5, 8), (4, 8))
    """
    if name.rpartition(".")[2] not in NAMES or found.dim() not in (2, 3) or found.dim() != len(shape):
        return None
    if found.shape[-1] != shape[-1] or found.shape[:-2] != shape[:-2]:
        return None
    extra = next((n for n in range(MOST_EXTRA) if _is_square(found.shape[-2] - n) and _is_square(shape[-2] - n)), None)
    if extra is None:
        return None
    tokens = found if found.dim() == 3 else found.unsqueeze(0)
    old, new = isqrt(found.shape[-2] - extra), isqrt(shape[-2] - extra)
    grid = tokens[:, extra:].float().transpose(1, 2).unflatten(2, (old, old))
    resampled = functional.interpolate(grid, (new, new), mode="bicubic", antialias=True, align_corners=False)
    whole = tokens.new_empty(len(tokens), shape[-2], shape[-1])
    whole[:, :extra] = tokens[:, :extra]
    whole[:, extra:] = resampled.flatten(2).transpose(1, 2)
    return whole.view(shape)


def _is_square(number: int) -> bool:
    return number > 0 and isqrt(number) ** 2 == number
