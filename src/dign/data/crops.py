"""Random resized crops out of whole photographs: which part of a picture training sees, and in what shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from dign.core.errors import UserError
from dign.data.decoding import open_upright, to_channels_first
from dign.data.framing import INTERPOLATIONS, MIDDLE, Framing, pad_to_square

TRIES = 10
"""Draws of a crop's area and shape until one fits into the picture; after them it is the largest that does."""
ENOUGH = 1.6
"""A picture whose shorter side is more than so many times that of a crop is shrunk to that first: a photograph of 12
megapixels then costs hardly more than a small one, and only crops of less than 0.4 of its area are enlarged."""


@dataclass(frozen=True)
class RandomCrop:
    """Cuts a random part out of a picture and resizes it to size x size pixels.

    Area and shape are drawn as is usual for ImageNet (Szegedy et al., 2015): a share of the picture's area between
    `scale` and 1, a ratio of width to height between 1/`ratio` and `ratio`, uniform in its logarithm. The draw of a
    picture depends on `seed`, the epoch and the picture's number alone, so a run can be resumed and shared.

    Args:
        size: Side of the crops in pixels.
        scale: Least share of the picture's area, above 0 and at most 1.
        ratio: Largest ratio of a crop's sides, at least 1.
        framing: Whether crops are taken out of the picture ("crop"), out of the square that it is padded to ("pad"),
            or out of the square that it is squashed to ("squash"); and the interpolation.
    """

    size: int
    scale: float = 0.08
    ratio: float = 4 / 3
    framing: Framing = MIDDLE

    def __post_init__(self) -> None:
        if not 0 < self.scale <= 1 or not 1 <= self.ratio <= 100:
            raise UserError(
                f"random crops need a scale above 0 and at most 1 and a ratio of 1 to 100, not {self.scale} and "
                f"{self.ratio}."
            )

    def read(self, file: bytes | Path, seed: int, epoch: int, number: int) -> np.ndarray:
        """Decode an image file and cut a crop out of it: uint8 (3,size,size).

        Raises:
            UserError: It cannot be decoded. The message gives the reason; the caller adds the name of the file.
        """
        picture = self.shrink(open_upright(file, self.enough))
        return to_channels_first(self.cut(picture, make_draws(seed, epoch, number)))

    @property
    def enough(self) -> int:
        """The shorter side that a picture is shrunk to before the crop."""
        return math.ceil(ENOUGH * self.size)

    def shrink(self, picture: Image.Image) -> Image.Image:
        """A picture of at most `enough` pixels on its shorter side (when padded: on its longer side)."""
        side = max(picture.size) if self.framing.fit == "pad" else min(picture.size)
        if side <= self.enough:
            return picture
        width, height = (max(1, round(each * self.enough / side)) for each in picture.size)
        return picture.resize((width, height), INTERPOLATIONS[self.framing.interpolation])

    def cut(self, picture: Image.Image, draws: np.random.Generator) -> Image.Image:
        """Cut a crop out of an RGB picture."""
        if self.framing.fit == "pad":
            picture = pad_to_square(picture)
        width, height = picture.size
        if self.framing.fit == "squash":  # the box is drawn in the square, and stretched with the picture
            left, top, right, bottom = self.draw_box(1.0, 1.0, draws)
            box = (left * width, top * height, right * width, bottom * height)
        else:
            box = self.draw_box(float(width), float(height), draws)
        return picture.resize((self.size, self.size), INTERPOLATIONS[self.framing.interpolation], box=box)

    def draw_box(self, width: float, height: float, draws: np.random.Generator) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of a crop out of a picture of this size."""
        across, down = self._draw_sides(width, height, draws)
        left, top = (width - across) * draws.random(), (height - down) * draws.random()
        return left, top, min(left + across, width), min(top + down, height)

    def _draw_sides(self, width: float, height: float, draws: np.random.Generator) -> tuple[float, float]:
        widest = math.log(self.ratio)
        for _ in range(TRIES):
            area = width * height * (self.scale + (1 - self.scale) * draws.random())
            shape = math.exp(widest * (2 * draws.random() - 1))
            across, down = math.sqrt(area * shape), math.sqrt(area / shape)
            if across <= width and down <= height:
                return across, down
        return min(width, height * self.ratio), min(height, width * self.ratio)


def make_draws(seed: int, epoch: int, number: int) -> np.random.Generator:
    """The random numbers for one picture in one epoch: a counter of its own, which costs nothing to set.

    >>> make_draws(0, 1, 2).random() == make_draws(0, 1, 2).random() != make_draws(0, 1, 3).random()
    True
    """
    return np.random.Generator(np.random.Philox(key=[seed, (epoch << 40) + number]))
