"""What trained weights expect of an image: its size, how it is cut to that, and its normalization."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from dign.core.checks import check_value
from dign.core.errors import UserError

LARGEST = 4096
FITS = ("crop", "pad", "squash")
INTERPOLATIONS = ("bilinear", "bicubic")


@dataclass(frozen=True)
class Preprocessing:
    """How images were prepared when weights were trained; None where nothing is known.

    Args:
        size: Side of the square images, in pixels.
        mean: Of each channel, in [0,1] units.
        std: Of each channel, in [0,1] units.
        fit: One of `FITS`: the middle of a picture is cut out, or all of it is padded or squashed to a square.
        crop_fraction: The share of the resized picture's shorter side that the crop keeps.
        interpolation: One of `INTERPOLATIONS`.

    Raises:
        UserError: A value is out of range.

    >>> Preprocessing(size=224, crop_fraction=0.875).describe()
    '224 pixels, crop fraction 0.875'
    """

    size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    fit: str | None = None
    crop_fraction: float | None = None
    interpolation: str | None = None

    def __post_init__(self) -> None:
        if self.size is not None and not 1 <= self.size <= LARGEST:
            raise UserError(f"size must be from 1 to {LARGEST} pixels, not {self.size}.")
        for name, low in (("mean", -1e4), ("std", 1e-6)):
            values = getattr(self, name)
            if values is not None and not (len(values) == 3 and all(low <= value <= 1e4 for value in values)):
                shown = "numbers above 0" if name == "std" else "numbers"
                raise UserError(f"{name} must be three {shown}, not {', '.join(map(str, values))}.")
        if self.crop_fraction is not None and not 0.1 <= self.crop_fraction <= 1:
            raise UserError(f"crop_fraction must be from 0.1 to 1, not {self.crop_fraction}.")
        for name, choices in (("fit", FITS), ("interpolation", INTERPOLATIONS)):
            if getattr(self, name) is not None:
                check_value(name, getattr(self, name), choices, None)

    def override(self, other: Preprocessing) -> Preprocessing:
        """This, with what `other` knows in its place.

        >>> Preprocessing(size=224, fit="crop").override(Preprocessing(size=160))
        Preprocessing(size=160, mean=None, std=None, fit='crop', crop_fraction=None, interpolation=None)
        """
        known = {spec.name: getattr(other, spec.name) for spec in fields(other)}
        return replace(self, **{name: value for name, value in known.items() if value is not None})

    def describe(self) -> str:
        """What is known, for a line of text.

        >>> Preprocessing(mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25), interpolation="bicubic").describe()
        'bicubic, mean 0.5, 0.5, 0.5, std 0.25, 0.25, 0.25'
        """
        parts = [
            f"{self.size} pixels" if self.size else "",
            {"squash": "squashed", "pad": "padded"}.get(self.fit or "", ""),
            f"crop fraction {self.crop_fraction:g}" if self.crop_fraction and self.fit in (None, "crop") else "",
            self.interpolation or "",
            f"mean {_join(self.mean)}" if self.mean else "",
            f"std {_join(self.std)}" if self.std else "",
        ]
        return ", ".join(filter(None, parts))


def _join(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.4g}" for value in values)
