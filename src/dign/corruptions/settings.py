"""Names, families and parameters of the corruptions, for the image sizes they were published for; without torch."""

import json
import math
from functools import cache
from importlib import resources
from typing import Any

from dign.core.errors import UserError, unknown_name

FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
NAMES: tuple[str, ...] = tuple(name for family in FAMILIES.values() for name in family)
SEVERITIES = (1, 2, 3, 4, 5)
FROST_SCALE = {"cifar": 0.2, "tiny-imagenet": 0.3, "imagenet": 1.0}  # how much the frost pictures are shrunk
PROFILES: dict[str, int] = {"cifar": 32, "tiny-imagenet": 64, "imagenet": 224}  # name -> side of the images it is for

# Which entries of a setting are lengths in pixels; besides, gaussian_blur's only one, and spatter's fifth if it is mud.
_LENGTHS: dict[str, tuple[int, ...]] = {
    "defocus_blur": (0,),  # radius
    "glass_blur": (0, 1),  # deviation, reach
    "motion_blur": (0, 1),  # radius, deviation
    "snow": (4, 5),  # radius, deviation
    "frost": (2,),  # scale of the pictures
    "spatter": (2,),  # deviation
    "elastic_transform": (0, 1, 2),  # amplitude, deviation, shift
}


def family_of(name: str) -> str:
    """Return the family that a corruption belongs to.

    Args:
        name: One of `NAMES`.

    Raises:
        UserError: There is no corruption of this name.

    >>> family_of("fog")
    'weather'
    """
    for family, names in FAMILIES.items():
        if name in names:
            return family
    raise unknown_name("corruption", name, NAMES)


def profile_for(height: int, width: int) -> str:
    """Return the profile for images of this size: the one whose side is nearest, on a logarithmic scale.

    Args:
        height: In pixels.
        width: In pixels; the geometric mean of both sides is compared.

    >>> profile_for(32, 32), profile_for(96, 96)
    ('cifar', 'tiny-imagenet')
    """
    side = math.sqrt(height * width)
    return min(PROFILES, key=lambda name: abs(math.log(PROFILES[name] / side)))


@cache
def _published() -> dict[str, dict[str, list[Any]]]:
    text = resources.files("dign.corruptions").joinpath("severities.json").read_text(encoding="utf-8")
    return {name: values for name, values in json.loads(text).items() if name in PROFILES}


def get_parameters(name: str, severity: int, profile: str, side: float | None = None) -> Any:
    """Return what a corruption uses at a severity: a number, a list or a dictionary.

    Args:
        name: One of `NAMES`.
        severity: 1 to 5.
        profile: Whose published generator.
        side: Of the images, the geometric mean of height and width; by default the one that the profile is for. Lengths
            in pixels go with it: they are multiplied by `side` over the profile's own. Sides below 32, the smallest
            published, count as 32: on fewer pixels, smaller blurs would be none.

    >>> get_parameters("gaussian_blur", 5, "imagenet"), get_parameters("gaussian_blur", 5, "imagenet", 112)
    (6, 3.0)
    """
    if profile not in PROFILES:
        raise unknown_name("corruption profile", profile, PROFILES)
    table = _published()[profile]
    if name not in table:
        raise unknown_name("corruption", name, table)
    if isinstance(severity, bool | float) or severity not in SEVERITIES:
        raise UserError(f"invalid severity {severity!r}: expected a whole number from 0 (clean) to 5.")
    setting = table[name][severity - 1]
    setting = [*setting, FROST_SCALE[profile]] if name == "frost" else setting
    factor = 1.0 if side is None else max(side, min(PROFILES.values())) / PROFILES[profile]
    return setting if factor == 1 else _scale_lengths(name, setting, factor)


def _scale_lengths(name: str, setting: Any, factor: float) -> Any:
    """A setting with its lengths in pixels multiplied; those that must be whole numbers are rounded."""
    if name == "gaussian_blur":
        return setting * factor
    if name not in _LENGTHS:
        return setting
    scaled = list(setting)
    for place in _LENGTHS[name]:
        scaled[place] *= factor
    if name == "glass_blur":
        scaled[1] = max(1, round(scaled[1]))
    elif name == "defocus_blur" and scaled[0] > 8:
        scaled[0] = round(scaled[0])
    elif name == "spatter" and setting[5] == 1:
        scaled[4] *= factor
    return scaled
