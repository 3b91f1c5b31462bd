"""Normalization as a layer, so that every model takes [0,1] images and its statistics travel with its weights."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Normalize(nn.Module):
    """(x - mean) / std per channel; mean and std are saved with the weights."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).view(-1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).view(-1, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) / self.std


class Standardize(Normalize):
    """As `Normalize`, of images that are given the mean and the standard deviation of the training images first.

    Brightness and contrast of an image then make no difference, as long as no value is clipped and its deviation stays
    above `LEAST_DEVIATION`; its colors do.

    >>> images = 0.2 + 0.5 * torch.rand(2, 3, 8, 8)
    >>> standardize = Standardize(mean=[0.4, 0.5, 0.6], std=[0.2, 0.2, 0.3])
    >>> torch.testing.assert_close(standardize(0.1 * images + 0.7), standardize(images))
    """

    def forward(self, x: Tensor) -> Tensor:
        mean = self.mean.mean()
        std = (self.std.square() + (self.mean - mean).square()).mean().sqrt()  # of all channels' values together
        x = x - x.mean(dim=(1, 2, 3), keepdim=True)
        variance = x.square().mean(dim=(1, 2, 3), keepdim=True)
        return super().forward(x * (std / variance.clamp(min=LEAST_DEVIATION**2).sqrt()) + mean)


LEAST_DEVIATION = 0.0125
"""Standard deviation, three gray levels, from which on down contrast is not raised further: a flat image stays flat."""


class Normalized(nn.Module):
    """A model that wants normalized images, as one that takes images in [0,1].

    Args:
        model: Any module; what it returns is returned unchanged.
        mean: The mean of each channel, in [0,1] units.
        std: The standard deviation of each channel, in [0,1] units.

    >>> model = Normalized(nn.Flatten(), mean=[0.5, 0.5, 0.5], std=[0.25, 0.25, 0.25])
    >>> model(torch.full((1, 3, 1, 1), 0.75))
    tensor([[1., 1., 1.]])
    """

    def __init__(self, model: nn.Module, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.normalize, self.model = Normalize(mean, std), model

    def forward(self, x: Tensor) -> Any:
        return self.model(self.normalize(x))


def spread_indices(count: int, most: int, image_size: Sequence[int]) -> Tensor:
    """Up to `most` of `count` images, at equal distances from the first to the last: they may lie sorted by class.

    Of images larger than 64x64 fewer, so that they have no more pixels.

    >>> spread_indices(7, 3, (32, 32)), spread_indices(7, 3, (128, 96))
    (tensor([0, 2, 4]), tensor([0]))
    """
    height, width = image_size
    chosen = min(count, most, max(1, most * 64 * 64 // (height * width)))
    return torch.arange(chosen) * count // max(chosen, 1)


def channel_statistics(images: Tensor, most: int = 10_000) -> tuple[list[float], list[float]]:
    """Mean and standard deviation per channel, in [0,1] units, of up to `most` images spread over uint8 (N,3,H,W)."""
    return measure_channels(images.__getitem__, spread_indices(len(images), most, images.shape[-2:]))


def measure_channels(take: Callable[[Tensor], Tensor], indices: Tensor) -> tuple[list[float], list[float]]:
    """As `channel_statistics`, of the images at `indices`, which `take` reads a few at a time.

    The levels are counted, so that sums are exact.
    """
    levels, histogram = torch.arange(256, dtype=torch.float64), torch.zeros(3, 256, dtype=torch.int64)
    for part in indices.split(64):
        for channel, values in enumerate(take(part).transpose(0, 1)):
            histogram[channel] += torch.bincount(values.flatten(), minlength=256)
    weights = histogram / histogram.sum(1, keepdim=True)
    mean = (weights * levels).sum(1, keepdim=True)
    std = (weights * (levels - mean).square()).sum(1).sqrt()
    return (mean[:, 0] / 255).tolist(), (std / 255).clamp(min=1e-3).tolist()
