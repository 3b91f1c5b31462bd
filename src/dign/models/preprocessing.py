"""What trained weights expect of an image: its size, how it is cut to that, and its normalization."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

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

    >>> Preprocessing(size=224, crop_fraction=0.875).describe()
    '224 pixels, crop fraction 0.875'
    """

    size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    fit: str | None = None
    crop_fraction: float | None = None
    interpolation: str | None = None

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
