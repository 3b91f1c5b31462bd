"""The transforms of the published training: crop, flip, color jitter and a slight rotation, on whole batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from dign.augment.geometry import warp
from dign.core.checks import check_at_least
from dign.core.image_rng import uniform
from dign.core.seeds import make_generator


@dataclass(frozen=True, kw_only=True)
class TrainTransforms:
    """Random crop, flip, rotation and color jitter, drawn for each image.

    The defaults are the published ones; zero (or False) switches a transform off. Crop, flip and rotation take the
    nearest pixel, as published: images keep their noise and sharpness, which bilinear interpolation would reduce.

    Deviations: crop, flip and rotation are one warp, so the corners that a rotation turns in hold the image's own
    pixels where there are any instead of black; color comes after geometry, always in the order brightness, contrast,
    saturation, where the published transforms shuffle the three.

    Args:
        crop: Zero padding in pixels around the image, before a window of its size is cut out at random.
        flip: Mirror every second image, left to right.
        rotation: Largest angle in degrees, either way.
        brightness: Largest change of the factor away from 1.
        contrast: The same of contrast.
        saturation: The same of saturation.

    >>> x = torch.rand(8, 3, 32, 32)
    >>> TrainTransforms()(x, torch.Generator().manual_seed(0)).shape
    torch.Size([8, 3, 32, 32])
    """

    crop: int = 4
    flip: bool = True
    rotation: float = 2.0
    brightness: float = 0.25
    contrast: float = 0.25
    saturation: float = 0.25

    def __post_init__(self) -> None:
        check_at_least(0, crop=self.crop, rotation=self.rotation)
        check_at_least(0, brightness=self.brightness, contrast=self.contrast, saturation=self.saturation)

    def __call__(
        self, x: Tensor, generator: torch.Generator | None = None, *, mirrored: Tensor | None = None
    ) -> Tensor:
        """Transform a batch.

        Args:
            x: Images (N,3,H,W) in [0,1].
            generator: The source of all random numbers, on the device of `x`.
            mirrored: Which images to flip (N,), where that is not random (see `alternating_flips`).

        Returns:
            New images of the same shape, in [0,1].
        """
        if self.crop or self.flip or self.rotation:
            x = self._move(x, generator, mirrored)
        if self.brightness or self.contrast or self.saturation:
            x = self._color(x, generator)
        return x

    def _move(self, x: Tensor, generator: torch.Generator | None, mirrored: Tensor | None) -> Tensor:
        draw = uniform(4, len(x), generator=generator, device=x.device, dtype=torch.float32, images=1)
        offset = (draw[:2] * (2 * self.crop + 1)).floor().clamp(max=2 * self.crop) - self.crop
        mirrored = draw[2] < 0.5 if mirrored is None else mirrored
        mirror = torch.ones_like(draw[2])
        if self.flip:
            mirror.masked_fill_(mirrored, -1)
        angle = math.radians(self.rotation) * (2 * draw[3] - 1)
        cosine, sine = angle.cos(), angle.sin()
        across = torch.stack((mirror * cosine, -mirror * sine, offset[0]), dim=-1)
        down = torch.stack((sine, cosine, offset[1]), dim=-1)
        return warp(x, torch.stack((across, down), dim=1), mode="nearest")

    def _color(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        def factor(spread: float) -> Tensor:
            low, high = max(0.0, 1 - spread), 1 + spread
            drawn = uniform(len(x), 1, 1, 1, generator=generator, device=x.device, dtype=x.dtype)
            return low + (high - low) * drawn

        x = (
            x * factor(self.brightness) if self.brightness else x.clone()
        )  # a new tensor, which is changed in place below
        x.clamp_(0, 1)
        if self.contrast:
            _blend_(x, _gray(x).mean((-2, -1), keepdim=True), factor(self.contrast))
        if self.saturation:
            _blend_(x, _gray(x), factor(self.saturation))
        return x


def shrink(x: Tensor) -> Tensor:
    """Shrink images (N,3,H,W) to about three quarters of their sides, in multiples of four pixels.

    A net that takes images of any size learns most of what there is to learn from these, in half the time.

    >>> shrink(torch.rand(2, 3, 32, 32)).shape
    torch.Size([2, 3, 24, 24])
    """
    return functional.interpolate(x, size=shrunk_size(*x.shape[-2:]), mode="bilinear", antialias=True)


def shrunk_size(height: int, width: int) -> tuple[int, int]:
    """The height and width of what `shrink` returns.

    >>> shrunk_size(32, 48)
    (24, 36)
    """
    return 4 * round(height * 3 / 16), 4 * round(width * 3 / 16)


def alternating_flips(images: int, epoch: int, seed: int) -> Tensor:
    """Which of the training images are flipped in an epoch: those that were not in the epoch before.

    The first epoch is random. Over two epochs the net sees both sides of every image, where random flips show the same
    side of every second image twice (Jordan, 2024).

    Args:
        images: The number of training images.
        epoch: The epoch, from 0.
        seed: The run's seed.

    Returns:
        One bool per image.

    >>> bool((alternating_flips(5, 0, seed=3) ^ alternating_flips(5, 1, seed=3)).all())
    True
    """
    first = torch.rand(images, generator=make_generator(seed, "flips")) < 0.5
    return first if epoch % 2 == 0 else ~first


def _gray(x: Tensor) -> Tensor:
    """Luma of (N,3,H,W) as (N,1,H,W), with the weights of ITU-R 601."""
    return (0.299 * x[:, 0:1]).add_(x[:, 1:2], alpha=0.587).add_(x[:, 2:3], alpha=0.114)


def _blend_(x: Tensor, other: Tensor, share: Tensor) -> None:
    """x becomes share * x + (1 - share) * other, in [0,1]."""
    x.mul_(share).add_(other * (1 - share)).clamp_(0, 1)
