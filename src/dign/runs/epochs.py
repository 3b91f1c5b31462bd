"""How many epochs a run has where none are set: they follow the number of training images."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from dign.runs.config import RunConfig


class Length(NamedTuple):
    """Updates of the weights that a short training needs, whatever the number of images, and bounds of the epochs:
    many images are still seen a few times, and a few images not hundreds of times."""

    steps: int
    fewest: int
    most: int


FROM_SCRATCH = Length(500, 8, 60)
FINE_TUNING = Length(300, 4, 20)
"""Trained weights need fewer steps: results/photos has trials with 2, 4 and 8 epochs of 350 photographs."""


def choose_epochs(images: int, batch_size: int, length: Length = FROM_SCRATCH) -> int:
    """Epochs that make about as many steps as wanted.

    >>> [choose_epochs(images, 32) for images in (100, 345, 2640, 100_000)]
    [60, 47, 8, 8]
    >>> [choose_epochs(images, 32, FINE_TUNING) for images in (100, 345, 2640, 100_000)]
    [20, 20, 4, 4]
    """
    return min(length.most, max(length.fewest, -(-length.steps * min(batch_size, images) // images)))


def fill_epochs(config: RunConfig, images: int) -> RunConfig:
    """The configuration with its epochs, for so many training images, where it leaves them open (0)."""
    if config.epochs:
        return config
    length = FINE_TUNING if config.init else FROM_SCRATCH
    return replace(config, epochs=choose_epochs(images, config.batch_size, length))
