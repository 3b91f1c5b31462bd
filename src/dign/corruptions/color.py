"""Hue, saturation and value, of which the corruptions change the last two."""

import torch
from torch import Tensor

from dign.core.pixels import to_float, truncate_to_uint8
from dign.core.placement import copy_to_device

# Weights of red, green and blue in the gray value of a picture (ITU-R BT.601).
LUMA = (0.299, 0.587, 0.114)


def recolor(images: Tensor, *, value: float = 0.0, saturation: tuple[float, float] = (1.0, 0.0)) -> Tensor:
    """Add to the HSV value, scale and shift the HSV saturation; images (N,3,H,W) uint8, the result as well.

    With V the largest channel, m the smallest and S = (V - m) / V, a channel x is V (1 - S k), where
    k = (V - x) / (V - m) depends on hue alone. So only V and S need be changed, and no hue is ever computed.
    Gray has no hue; as in the usual conversion it counts as red: k = (0, 1, 1).
    """
    x = to_float(images, torch.float64)
    top, low = x.amax(dim=1, keepdim=True), x.amin(dim=1, keepdim=True)
    spread = top - low
    gray = spread == 0
    share = (top - x).div_(torch.where(gray, 1.0, spread))
    share[:, 1:].masked_fill_(gray, 1.0)
    old_saturation = spread.div_(torch.where(top == 0, 1.0, top))
    new_saturation = old_saturation.mul_(saturation[0]).add_(saturation[1]).clamp_(0, 1)
    new_value = top.add_(value).clamp_(0, 1)
    return truncate_to_uint8(share.mul_(new_saturation).neg_().add_(1).mul_(new_value))


def luma(images: Tensor) -> Tensor:
    """The gray value (N,1,H,W) of float images (N,3,H,W); gray images (N,1,H,W) are their own."""
    if images.shape[1] == 1:
        return images
    red, green, blue = images.split(1, dim=1)
    gray: Tensor = red * LUMA[0] + green * LUMA[1] + blue * LUMA[2]
    return gray


def paint(rgb: tuple[float, float, float], like: Tensor) -> Tensor:
    """A color as (1,C,1,1) for images of C channels, gray where they are."""
    color = copy_to_device(torch.tensor(rgb, dtype=torch.float32), like.device).view(1, 3, 1, 1)
    return color if like.shape[1] == 3 else luma(color)
