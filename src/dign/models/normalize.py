"""Normalization as a layer, so that every model takes [0,1] images and its statistics travel with its weights."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.pixels import to_float


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


def spread(images: Tensor, most: int) -> Tensor:
    """Up to `most` of the images, at equal distances from the first to the last: they may lie sorted by class.

    Of images larger than 64x64 fewer, so that they have no more pixels.
    """
    height, width = images.shape[-2:]
    count = min(len(images), most, max(1, most * 64 * 64 // (height * width)))
    return images[torch.arange(count) * len(images) // count] if count < len(images) else images


def channel_statistics(images: Tensor, most: int = 10_000) -> tuple[list[float], list[float]]:
    """Mean and standard deviation per channel, in [0,1] units, of up to `most` images spread over uint8 (N,3,H,W)."""
    chosen = to_float(spread(images, most), torch.float64)
    std, mean = torch.std_mean(chosen, dim=(0, 2, 3), correction=0)
    return mean.tolist(), std.clamp(min=1e-3).tolist()
