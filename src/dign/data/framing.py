"""How a photograph of any shape becomes an image of the size that a model sees."""

from __future__ import annotations

import math
from dataclasses import dataclass

from PIL import Image, ImageOps

from dign.core.checks import check_value
from dign.core.errors import UserError

FITS = ("crop", "pad", "squash")
INTERPOLATIONS = {"bicubic": Image.Resampling.BICUBIC, "bilinear": Image.Resampling.BILINEAR}
PADDING = (128, 128, 128)
"""Gray: what surrounds a padded picture is neither dark nor bright."""


@dataclass(frozen=True)
class Framing:
    """How a picture is brought to the size of a model's images, when it is evaluated.

    Args:
        fit: "crop" keeps the aspect ratio and cuts the middle out, "pad" keeps the aspect ratio and the whole picture
            and surrounds it with gray, "squash" keeps the whole picture and lets the aspect ratio go.
        crop_fraction: With "crop": the shorter side is resized to the image size over this fraction, and the middle is
            cut out of that; 1 is the largest square in the picture. ImageNet models are mostly evaluated with 0.875.
        interpolation: "bicubic" or "bilinear", antialiased where a picture shrinks.

    Raises:
        UserError: A value is invalid.

    >>> Framing(crop_fraction=0.875).apply(Image.new("RGB", (640, 480)), (224, 224)).size
    (224, 224)
    """

    fit: str = "crop"
    crop_fraction: float = 1.0
    interpolation: str = "bicubic"

    def __post_init__(self) -> None:
        check_value("fit", self.fit, FITS, None)
        check_value("interpolation", self.interpolation, tuple(INTERPOLATIONS), None)
        if not 0.1 <= self.crop_fraction <= 1:
            raise UserError(f"crop_fraction must be from 0.1 to 1, not {self.crop_fraction}.")

    @property
    def key(self) -> str:
        """A word for file names; empty for the largest square in the middle."""
        if self == Framing():
            return ""
        fraction = f"{self.crop_fraction:g}".replace(".", "") if self.fit == "crop" else ""
        return f"{self.fit}{fraction}{'' if self.interpolation == 'bicubic' else '-' + self.interpolation}-"

    def decoded_side(self, side: int) -> int:
        """The shorter side, in pixels, that a picture should at least be decoded to for images of `side` pixels."""
        return 2 * (self._resized(side) if self.fit == "crop" else side)

    def apply(self, image: Image.Image, size: tuple[int, int]) -> Image.Image:
        """Bring an RGB image to `size`, height and width; one that has this size already is left as it is."""
        height, width = size
        if image.size == (width, height) and (self.fit != "crop" or self.crop_fraction == 1):
            return image
        method = INTERPOLATIONS[self.interpolation]
        if self.fit == "squash":
            return image.resize((width, height), method)
        if self.fit == "pad":
            return ImageOps.pad(image, (width, height), method=method, color=PADDING)
        if self.crop_fraction == 1:
            return ImageOps.fit(image, (width, height), method=method)
        return self._crop(image, height, width, method)

    def _crop(self, image: Image.Image, height: int, width: int, method: Image.Resampling) -> Image.Image:
        """As torchvision's Resize and CenterCrop round it, so that published weights meet the pixels they know."""
        short = self._resized(max(height, width))
        least = min(image.size)
        across, down = (short if side == least else int(short * side / least) for side in image.size)
        left, top = round((across - width) / 2), round((down - height) / 2)
        return image.resize((across, down), method).crop((left, top, left + width, top + height))

    def _resized(self, side: int) -> int:
        return math.floor(side / self.crop_fraction + 1e-9)


MIDDLE = Framing()
"""The largest square in the middle."""


def pad_to_square(image: Image.Image) -> Image.Image:
    """A square with the whole picture in its middle.

    >>> pad_to_square(Image.new("RGB", (4, 2))).size
    (4, 4)
    """
    side = max(image.size)
    square = Image.new("RGB", (side, side), PADDING)
    square.paste(image, tuple((side - each) // 2 for each in image.size))  # type: ignore[arg-type]
    return square
