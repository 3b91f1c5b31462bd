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


def get_parameters(name: str, severity: int, profile: str) -> Any:
    """Return what the published generator of a profile uses at a severity: a number, a list or a dictionary."""
    if profile not in PROFILES:
        raise unknown_name("corruption profile", profile, PROFILES)
    table = _published()[profile]
    if name not in table:
        raise unknown_name("corruption", name, table)
    if isinstance(severity, bool | float) or severity not in SEVERITIES:
        raise UserError(f"invalid severity {severity!r}: expected a whole number from 0 (clean) to 5.")
    setting = table[name][severity - 1]
    return [*setting, FROST_SCALE[profile]] if name == "frost" else setting
