"""How many epochs a run has where none are set: they follow the number of training images."""

from __future__ import annotations

from dataclasses import replace

from dign.runs.config import RunConfig

STEPS = 500
"""Updates of the weights that a short training needs, whatever the number of images."""
FEWEST, MOST = 8, 60
"""Epochs: many images are still seen a few times, and a few images not hundreds of times."""


def choose_epochs(images: int, batch_size: int) -> int:
    """Epochs that make about `STEPS` steps.

    >>> [choose_epochs(images, 32) for images in (100, 345, 2640, 100_000)]
    [60, 47, 8, 8]
    """
    return min(MOST, max(FEWEST, -(-STEPS * min(batch_size, images) // images)))


def fill_epochs(config: RunConfig, images: int) -> RunConfig:
    """The configuration with its epochs, for so many training images, where it leaves them open (0)."""
    return config if config.epochs else replace(config, epochs=choose_epochs(images, config.batch_size))
