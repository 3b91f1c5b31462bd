"""Sets of corruptions: the nineteen common ones, and those that a claim of robustness is tested with beyond them.

Names and settings, without torch.
"""

import json
from functools import cache
from importlib import resources
from typing import Any

from dign.core.errors import UserError, unknown_name
from dign.corruptions.settings import (
    BETWEEN,
    FAMILIES,
    NAMES,
    SEVERITIES,
    blend_numbers,
    check_profile,
    middle_of,
    share_of_larger,
)
from dign.corruptions.settings import family_of as common_family_of
from dign.corruptions.settings import get_parameters as get_common_parameters

C_BAR: tuple[str, ...] = (
    "blue_noise_sample",
    "brownish_noise",
    "checkerboard_cutout",
    "circular_motion_blur",
    "inverse_sparkles",
    "lines",
    "pinch_and_twirl",
    "ripple",
    "sparkles",
    "transverse_chromatic_abberation",
)
IMAGENET_C_BAR: tuple[str, ...] = (
    "blue_noise_sample",
    "brownish_noise",
    "caustic_refraction",
    "checkerboard_cutout",
    "cocentric_sine_waves",
    "inverse_sparkles",
    "perlin_noise",
    "plasma_noise",
    "single_frequency_greyscale",
    "sparkles",
)
SENSORS: dict[str, tuple[float | int, ...]] = {
    "iso_noise": (0.056, 0.084, 0.126, 0.182, 0.266),
    "low_light": (0.6, 0.5, 0.4, 0.3, 0.2),
    "color_quant": (5, 4, 3, 2, 1),
    "camera_noise": (1600, 3200, 6400, 12800, 25600),
}
"""Standard deviation; brightest value; bits; ISO. By severity, for images of any size."""
SETS: dict[str, tuple[str, ...]] = {
    "c": NAMES,
    "c-bar": C_BAR,
    "imagenet-c-bar": IMAGENET_C_BAR,
    "sensors": tuple(SENSORS),
}
"""Set to its corruptions; two sets may share some."""
DESCRIPTIONS: dict[str, str] = {
    "c": "the nineteen common corruptions, those of mCA and mCA-N",
    "c-bar": "CIFAR-10-C-bar: ten that are unlike the common ones",
    "imagenet-c-bar": "ImageNet-C-bar: ten, of which five are in C-bar too",
    "sensors": "what cameras do: three of ImageNet-3DCC, and the noise of a sensor by ISO",
}
TITLES: dict[str, str] = {"c": "C", "c-bar": "C-bar", "imagenet-c-bar": "ImageNet-C-bar", "sensors": "Sensors"}
"""What tables call the mean accuracy over a set."""
FURTHER_SETS: tuple[str, ...] = tuple(name for name in SETS if name != "c")
ALL_NAMES: tuple[str, ...] = tuple(dict.fromkeys(name for names in SETS.values() for name in names))
"""Every corruption that `corrupt` knows."""
MORE_SQUARES = 5
FEWER_SQUARES = 3


def corruptions_of(name: str) -> tuple[str, ...]:
    """The corruptions of a set.

    Raises:
        UserError: There is no set of this name.

    >>> len(corruptions_of("c-bar"))
    10
    """
    if name not in SETS:
        raise unknown_name("set of corruptions", name, SETS)
    return SETS[name]


def family_of(name: str) -> str:
    """Return the family that a corruption belongs to: one of the four of the common ones, else its set.

    Args:
        name: One of `ALL_NAMES`.

    Raises:
        UserError: There is no corruption of this name.

    >>> family_of("fog"), family_of("ripple")
    ('weather', 'c-bar')
    """
    if name in NAMES:
        return common_family_of(name)
    for family in FURTHER_SETS:
        if name in SETS[family]:
            return "c-bar" if name in IMAGENET_C_BAR else family
    raise unknown_name("corruption", name, ALL_NAMES)


def get_parameters(name: str, severity: int, profile: str, side: float | None = None) -> Any:
    """Return what a corruption is given at a severity: a number, a list or a dictionary.

    side: of the images, with which the lengths in pixels of the nineteen go, and what lies between two profiles.
    """
    if name in NAMES:
        return get_common_parameters(name, severity, profile, side)
    if name not in ALL_NAMES:
        raise unknown_name("corruption", name, ALL_NAMES)
    check_profile(profile)
    if isinstance(severity, bool | float) or severity not in SEVERITIES:
        raise UserError(f"invalid severity {severity!r}: expected a whole number from 0 (clean) to 5.")
    if name in SENSORS:
        return SENSORS[name][severity - 1]
    small, large = (_c_bar_levels()[size][name][severity - 1] for size in ("cifar", "imagenet"))
    share = _share_of_large(profile, side)
    level = blend_numbers(small, large, share)
    if name == "pinch_and_twirl":
        return (level, round(blend_numbers(FEWER_SQUARES, MORE_SQUARES, share)))
    return level


def _share_of_large(profile: str, side: float | None) -> float:
    """Of ImageNet-C-bar's levels in those of a profile, 0 to 1: CIFAR-10-C-bar's serve up to 64 pixels."""
    if BETWEEN.get(profile, ("", ""))[1] == "imagenet":
        return share_of_larger(profile, side or middle_of(profile))
    return float(profile == "imagenet")


@cache
def _c_bar_levels() -> dict[str, dict[str, list[float]]]:
    text = resources.files("dign.corruptions.c_bar").joinpath("levels.json").read_text(encoding="utf-8")
    levels: dict[str, dict[str, list[float]]] = json.loads(text)
    return levels


GROUPS: dict[str, tuple[str, ...]] = {**FAMILIES, **SETS}
"""What a choice of corruptions may name beside single ones: families and sets."""
