"""What trained weights expect of an image: its size, normalization, crop and interpolation."""

from __future__ import annotations

from dataclasses import dataclass

INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")


@dataclass(frozen=True)
class Preprocessing:
    """How images were prepared when weights were trained; None where nothing is known.

    Args:
        size: Side of the square images, in pixels.
        mean: Of each channel, in [0,1] units.
        std: Of each channel, in [0,1] units.
        crop: The share of the resized picture's shorter side that the middle crop keeps.
        interpolation: One of `INTERPOLATIONS`.

    >>> Preprocessing(size=224, crop=0.875).describe()
    '224 pixels, crop 0.875'
    """

    size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    crop: float | None = None
    interpolation: str | None = None

    def describe(self) -> str:
        """What is known, for a line of text.

        >>> Preprocessing(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), interpolation="bicubic").describe()
        'bicubic, mean 0.5, 0.5, 0.5, std 0.25, 0.25, 0.25'
        """
        parts = [
            f"{self.size} pixels" if self.size else "",
            f"crop {self.crop:g}" if self.crop else "",
            self.interpolation or "",
            f"mean {_join(self.mean)}" if self.mean else "",
            f"std {_join(self.std)}" if self.std else "",
        ]
        return ", ".join(filter(None, parts))


def _join(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
