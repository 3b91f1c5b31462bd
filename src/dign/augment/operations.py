"""AugMix's image operations on whole batches of 8-bit images, with the results of PIL.

All take and return uint8 images (N,3,H,W), and take one parameter per image.
"""

import math

import torch
from torch import Tensor

from dign.augment.geometry import sample, source_positions
from dign.core.pixels import NUDGE, divide, whole_to_uint8


def autocontrast(images: Tensor) -> Tensor:
    """Stretch every channel to 0..255: floor(255 (v - low) / (high - low)); a flat channel stays.

    PIL truncates a product of rounded factors instead and may come out one level lower.

    >>> autocontrast(torch.tensor([[[[10, 20, 30]]]], dtype=torch.uint8))
    tensor([[[[  0, 127, 255]]]], dtype=torch.uint8)
    """
    low = images.amin((-2, -1), keepdim=True).float()
    span = images.amax((-2, -1), keepdim=True) - low
    # A flat channel: zero times one over one plus its own level. Elsewhere nothing is added.
    return whole_to_uint8((images - low).mul_(255).div_(span.clamp(min=1)).add_(low * (span == 0)))


def equalize(images: Tensor) -> Tensor:
    """Spread every channel's histogram evenly, in PIL's whole numbers: v becomes
    (step // 2 + pixels below v) // step, where step = pixels below the channel's highest value // 255.

    A channel where step is zero stays as it is.

    >>> equalize(torch.arange(64, dtype=torch.uint8).repeat(1, 1, 64, 1))[0, 0, 0, ::21]
    tensor([  0,  90, 179, 255], dtype=torch.uint8)
    """
    levels = images.view(-1, images[0, 0].numel())  # a row for each channel of each image
    values = levels.long()
    counts = torch.zeros(len(values), 257, device=images.device, dtype=torch.int32)  # of v in column v + 1
    counts[:, 1:].scatter_add_(1, values, torch.ones_like(values, dtype=torch.int32))
    below = counts.cumsum(1, dtype=torch.int32)[:, :256].float()
    step = divide(below.gather(1, levels.amax(1, keepdim=True).long()), 255).floor_()
    spread = whole_to_uint8(below.add_((step / 2).floor_()).div_(step.clamp(min=1)).clamp_(max=255))
    same = torch.arange(256, device=images.device, dtype=torch.uint8)
    return torch.where(step > 0, spread, same).gather(1, values).view_as(images)


def posterize(images: Tensor, bits: Tensor) -> Tensor:
    """Keep the upper `bits` (N,), 1..8, of every value.

    >>> posterize(torch.tensor([[[[200, 63]]]], dtype=torch.uint8), torch.tensor([2]))
    tensor([[[[192,   0]]]], dtype=torch.uint8)
    """
    mask = 256 - 2 ** (8 - bits.long())
    return images & mask.to(torch.uint8).view(-1, 1, 1, 1)


def solarize(images: Tensor, threshold: Tensor) -> Tensor:
    """Invert every value of at least `threshold` (N,), 1..256.

    >>> solarize(torch.tensor([[[[200, 63]]]], dtype=torch.uint8), torch.tensor([128]))
    tensor([[[[55, 63]]]], dtype=torch.uint8)
    """
    distance = (threshold - 1).to(torch.int16).view(-1, 1, 1, 1) - images
    bright = distance.bitwise_right_shift_(15).to(torch.uint8)  # -1 where it is negative, which is 255 as uint8
    return images ^ bright  # inverting eight bits: 255 - v


def affine(images: Tensor, matrices: Tensor) -> Tensor:
    """Warp bilinearly by the matrices (N,2,3) that `dign.augment.geometry` describes.

    As in PIL, values are cut down to whole levels, and the image is cut off sharply at its border, where a plain warp
    fades into the black around it.

    >>> from dign.augment.geometry import rotation
    >>> affine(torch.tensor([[[[1, 2], [3, 4]]]], dtype=torch.uint8), rotation(torch.tensor([90.0])))
    tensor([[[[2, 4],
              [1, 3]]]], dtype=torch.uint8)
    """
    positions = source_positions(matrices, images.shape[-2:])
    warped = whole_to_uint8(sample(images.float(), positions, padding="border").add_(NUDGE))
    inside = positions.to(torch.int8).view(torch.int16) == 0  # both coordinates, between -1 and 1, are cut to zero
    return warped.mul_(inside.view(torch.uint8).view(-1, 1, *images.shape[-2:]))


def fourier(images: Tensor, strength: Tensor, frequencies: Tensor, phase: Tensor, signs: Tensor) -> Tensor:
    """Add one wave of the Fourier basis, its sign drawn for each channel (after Soklaski et al., 2022).

    The wave is sqrt(2) * strength * cos(2 pi (fy row / H + fx column / W) + phase), so its root mean square is
    `strength`.

    Args:
        images: uint8 images (N,3,H,W).
        strength: Root mean square of the wave (N,), in [0,1] pixel units.
        frequencies: Whole numbers (fy, fx) of cycles per image, (N,2).
        phase: Phases (N,).
        signs: The sign of the wave in each channel, (N,3), -1 or 1.

    >>> gray = torch.full((1, 3, 2, 2), 100, dtype=torch.uint8)
    >>> stripes = fourier(gray, torch.tensor([0.1]), torch.tensor([[0, 1]]), torch.zeros(1), torch.ones(1, 3))
    >>> stripes[0, 0]
    tensor([[136,  64],
            [136,  64]], dtype=torch.uint8)
    """
    height, width = images.shape[-2:]
    row, column = (torch.arange(n, device=images.device, dtype=torch.float32) / n for n in (height, width))
    fy, fx = frequencies.view(-1, 2, 1, 1).unbind(1)
    turns = 2 * math.pi * (fy * row[:, None] + fx * column) + phase.view(-1, 1, 1)
    amplitude = 255 * math.sqrt(2) * strength[:, None] * signs
    wave = turns.cos_()[:, None] * amplitude[..., None, None]
    return whole_to_uint8(wave.add_(images).round_().clamp_(0, 255))
