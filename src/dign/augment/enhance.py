"""Invert, brightness, color, contrast and sharpness of 8-bit images, as PIL has them, with a factor for each image.

All take and return uint8 images (N,3,H,W), or gray ones (N,1,H,W). A factor (N,) of one leaves the image, zero gives
the black, gray or smooth image, and more than one goes away from it.
"""

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.pixels import divide, whole_to_uint8


def invert(images: Tensor) -> Tensor:
    """255 minus every value.

    >>> invert(torch.tensor([[[[0, 55]]]], dtype=torch.uint8))
    tensor([[[[255, 200]]]], dtype=torch.uint8)
    """
    return 255 - images


def brightness(images: Tensor, factor: Tensor) -> Tensor:
    """Between black and the image.

    >>> brightness(torch.tensor([[[[10, 200]]]], dtype=torch.uint8), torch.tensor([1.5]))
    tensor([[[[ 15, 255]]]], dtype=torch.uint8)
    """
    return _blend(torch.zeros((), device=images.device), images, factor)


def color(images: Tensor, factor: Tensor) -> Tensor:
    """Between the image in gray and the image.

    >>> color(torch.tensor([[[[200]], [[100]], [[0]]]], dtype=torch.uint8), torch.tensor([0.0])).flatten()
    tensor([118, 118, 118], dtype=torch.uint8)
    """
    return _blend(_gray(images), images, factor)


def contrast(images: Tensor, factor: Tensor) -> Tensor:
    """Between a plane of the image's mean gray and the image.

    >>> contrast(torch.tensor([[[[0, 100]]] * 3], dtype=torch.uint8).view(1, 3, 1, 2), torch.tensor([0.0]))[0, 0]
    tensor([[50, 50]], dtype=torch.uint8)
    """
    mean = (_gray(images).mean((-2, -1), keepdim=True) + 0.5).floor_()
    return _blend(mean, images, factor)


def sharpness(images: Tensor, factor: Tensor) -> Tensor:
    """Between the image smoothed (a 3x3 mean in which the pixel itself counts five times) and the image.

    The outermost pixels stay as they are.

    >>> images = torch.zeros(1, 3, 3, 3, dtype=torch.uint8)
    >>> images[..., 1, 1] = 130
    >>> sharpness(images, torch.tensor([0.0]))[0, 0, 1]
    tensor([ 0, 50,  0], dtype=torch.uint8)
    """
    values = images.float()
    if min(images.shape[-2:]) < 3:
        return images.clone()
    around = functional.avg_pool2d(values, 3, stride=1).mul_(9)  # of whole numbers: exact
    smooth = values.clone()
    inner = values[..., 1:-1, 1:-1]
    smooth[..., 1:-1, 1:-1] = divide(around.round_() + 4 * inner, 13).add_(0.5).floor_()
    return _blend(smooth, images, factor)


def _gray(images: Tensor) -> Tensor:
    """Luma (N,1,H,W) in whole levels, in PIL's arithmetic of whole numbers."""
    if images.shape[1] == 1:
        return images.float()
    red, green, blue = images.int().unbind(1)
    return ((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16)[:, None].float()


def _blend(other: Tensor, images: Tensor, factor: Tensor) -> Tensor:
    """other + factor * (images - other), cut down to whole levels."""
    values = images.float()
    return whole_to_uint8((values - other).mul_(factor.view(-1, 1, 1, 1)).add_(other).clamp_(0, 255))
