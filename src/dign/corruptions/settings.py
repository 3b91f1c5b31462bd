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
BETWEEN: dict[str, tuple[str, str]] = {"32-64": ("cifar", "tiny-imagenet"), "64-224": ("tiny-imagenet", "imagenet")}
"""Profiles for the sizes between the published ones, and the two that each lies between."""
PROFILE_NAMES: tuple[str, ...] = (*PROFILES, *BETWEEN)

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
    """Return the profile for images of this size: a published one at its own size, else one between two of them.

    Args:
        height: In pixels.
        width: In pixels; the geometric mean of both sides counts. Below 32 it is "cifar", beyond 224 "imagenet".

    >>> profile_for(32, 32), profile_for(96, 96), profile_for(500, 400)
    ('cifar', '64-224', 'imagenet')
    """
    side = math.sqrt(height * width)
    for name, (small, large) in BETWEEN.items():
        if PROFILES[small] < side < PROFILES[large]:
            return name
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
        profile: Whose published generator; or one of `BETWEEN`, for what lies between those of two.
        side: Of the images, the geometric mean of height and width; by default the one that the profile is for. Lengths
            in pixels go with it: they are multiplied by `side` over the profile's own. Sides below 32, the smallest
            published, count as 32: on fewer pixels, smaller blurs would be none.

    >>> get_parameters("gaussian_blur", 5, "imagenet"), get_parameters("gaussian_blur", 5, "imagenet", 112)
    (6, 3.0)
    >>> round(get_parameters("gaussian_noise", 5, "64-224", 120), 2)  # from 0.18 at 64 to 0.38 at 224
    0.28
    """
    check_profile(profile)
    if profile in BETWEEN:
        small, large = BETWEEN[profile]
        side = side or middle_of(profile)
        low, high = (get_parameters(name, severity, each, side) for each in (small, large))
        return _blend(name, low, high, share_of_larger(profile, side))
    table = _published()[profile]
    if name not in table:
        raise unknown_name("corruption", name, table)
    if isinstance(severity, bool | float) or severity not in SEVERITIES:
        raise UserError(f"invalid severity {severity!r}: expected a whole number from 0 (clean) to 5.")
    setting = table[name][severity - 1]
    setting = [*setting, FROST_SCALE[profile]] if name == "frost" else setting
    factor = 1.0 if side is None else max(side, min(PROFILES.values())) / PROFILES[profile]
    return setting if factor == 1 else _scale_lengths(name, setting, factor)


def check_profile(profile: str) -> None:
    """Raise a `UserError` that lists the profiles if there is none of this name."""
    if profile not in PROFILE_NAMES:
        raise unknown_name("corruption profile", profile, PROFILE_NAMES)


def middle_of(profile: str) -> float:
    """The side, in pixels, at which a profile of `BETWEEN` is as near to the one as to the other."""
    small, large = BETWEEN[profile]
    return math.sqrt(PROFILES[small] * PROFILES[large])


def share_of_larger(profile: str, side: float) -> float:
    """How far a side has come from the smaller to the larger of two published ones, logarithmically: 0 to 1.

    >>> share_of_larger("32-64", 32), round(share_of_larger("64-224", 120), 3)
    (0.0, 0.502)
    """
    small, large = (PROFILES[name] for name in BETWEEN[profile])
    return min(1.0, max(0.0, math.log(side / small) / math.log(large / small)))


def _blend(name: str, small: Any, large: Any, share: float) -> Any:
    """What is `share` of the way from one setting to another; counts are rounded."""
    if isinstance(small, dict):  # zoom_blur
        stop, step = (blend_numbers(small[key], large[key], share) for key in ("stop", "step"))
        count = 1 + round((stop - small["start"]) / step)
        return {"start": small["start"], "stop": stop, "step": step, "count": count}
    if isinstance(small, list):
        blended = [blend_numbers(low, high, share) for low, high in zip(small, large, strict=True)]
        return [blended[0], *map(round, blended[1:])] if name == "glass_blur" else blended
    value = blend_numbers(small, large, share)
    return round(value) if name == "jpeg_compression" else value


def blend_numbers(small: float, large: float, share: float) -> float:
    """The number that is `share` of the way from `small` to `large`, exact at both ends.

    >>> blend_numbers(2, 4, 0.25)
    2.5
    """
    return small if small == large else small * (1 - share) + large * share


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
