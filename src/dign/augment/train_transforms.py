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
    """Random crop, flip, rotation and color jitter; every image has draws of its own.

    `crop` is the zero padding in pixels around the image before a window of its own size is cut out at random;
    `flip` mirrors every second image, left to right; `rotation` is the largest angle in degrees, either way;
    `brightness`, `contrast` and `saturation` are the largest changes of their factors away from 1. Zero (or
    False) switches one off. The defaults are the published ones.

    Deviations: crop, flip and rotation are one bilinear warp, so the corners that a rotation turns in hold the
    image's own pixels where there are any instead of black (without rotation, crop and flip are exact); color
    comes after geometry, always in the order brightness, contrast, saturation, where the published transforms
    shuffle the three.

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
        """Images (N,3,H,W) in [0,1] to new ones of the same shape, in [0,1]; `generator` is on x's device.

        `mirrored` (N,) says which images to flip where that is not left to chance (see `alternating_flips`).
        """
        if self.crop or self.flip or self.rotation:
            x = self._move(x, generator, mirrored)
        if self.brightness or self.contrast or self.saturation:
            x = self._color(x, generator)
        return x

    def _move(self, x: Tensor, generator: torch.Generator | None, mirrored: Tensor | None) -> Tensor:
        draw = uniform(4, len(x), generator=generator, device=x.device, images=1)
        offset = (draw[:2] * (2 * self.crop + 1)).floor().clamp(max=2 * self.crop) - self.crop
        mirrored = draw[2] < 0.5 if mirrored is None else mirrored
        mirror = torch.where(mirrored, -1.0, 1.0) if self.flip else torch.ones_like(draw[2])
        angle = math.radians(self.rotation) * (2 * draw[3] - 1)
        cosine, sine = angle.cos(), angle.sin()
        across = torch.stack((mirror * cosine, -mirror * sine, offset[0]), dim=-1)
        down = torch.stack((sine, cosine, offset[1]), dim=-1)
        return warp(x, torch.stack((across, down), dim=1), mode="bilinear" if self.rotation else "nearest")

    def _color(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        def factor(spread: float) -> Tensor:
            low, high = max(0.0, 1 - spread), 1 + spread
            drawn = uniform(len(x), 1, 1, 1, generator=generator, device=x.device, dtype=x.dtype)
            return low + (high - low) * drawn

        x = x * factor(self.brightness) if self.brightness else x.clone()  # ours from here on: changed in place
        x.clamp_(0, 1)
        if self.contrast:
            _blend_(x, _gray(x).mean((-2, -1), keepdim=True), factor(self.contrast))
        if self.saturation:
            _blend_(x, _gray(x), factor(self.saturation))
        return x


def shrunk(x: Tensor) -> Tensor:
    """Images (N,3,H,W) at about three quarters of their sides, in multiples of four pixels: 24x24 of 32x32.

    A net that takes images of any size learns most of what there is to learn from these, in half the time.
    """
    return functional.interpolate(x, size=shrunk_size(*x.shape[-2:]), mode="bilinear", antialias=True)


def shrunk_size(height: int, width: int) -> tuple[int, int]:
    return 4 * round(height * 3 / 16), 4 * round(width * 3 / 16)


def alternating_flips(images: int, epoch: int, seed: int) -> Tensor:
    """Which of the training images (bool, one per image) are flipped in an epoch: those that were not in the last.

    The first epoch decides by chance. Over two epochs the net sees both sides of every image, where random flips show
    the same side twice to every second one (Jordan, 2024).
    """
    first = torch.rand(images, generator=make_generator(seed, "flips")) < 0.5
    return first if epoch % 2 == 0 else ~first


def _gray(x: Tensor) -> Tensor:
    """Luma of (N,3,H,W) as (N,1,H,W), with the weights of ITU-R 601."""
    return (0.299 * x[:, 0:1]).add_(x[:, 1:2], alpha=0.587).add_(x[:, 2:3], alpha=0.114)


def _blend_(x: Tensor, other: Tensor, share: Tensor) -> None:
    """x becomes share * x + (1 - share) * other, in [0,1]."""
    x.mul_(share).add_(other * (1 - share)).clamp_(0, 1)
