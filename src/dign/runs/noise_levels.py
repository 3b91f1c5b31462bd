"""Noise levels for images without a published setting: they follow the image size."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dign.methods import METHODS
from dign.runs.config import RunConfig, split_methods

NOISE_LEVELS = ("sigma_max", "sigma")
"""Settings of methods that are levels of noise, and follow the image size."""


def noise_level(side: int, at_32: float, at_64: float) -> float:
    """A noise level for images whose shorter side has `side` pixels, from the published ones for 32 and 64 pixels.

    Linear in between, and the nearest of the two outside, since nothing is published there: larger images bear more
    noise, but how much more is unknown.

    >>> [noise_level(side, 0.2, 0.6) for side in (16, 32, 48, 64, 224)]
    [0.2, 0.2, 0.4, 0.6, 0.6]
    """
    share = min(max((side - 32) / 32, 0.0), 1.0)
    return round(at_32 + share * (at_64 - at_32), 4)


def fill_noise_levels(config: RunConfig, side: int) -> dict[str, dict[str, Any]]:
    """The settings of the configuration's methods, with noise levels for the image size where none are set."""
    settings = {name: dict(table) for name, table in config.settings.items()}
    for name, key in find_unset_noise_levels(config):
        kind = METHODS[name]
        at_32: Any = next(spec.default for spec in fields(kind) if spec.name == key)
        at_64: Any = kind.published["tiny-imagenet"][key]
        settings.setdefault(name, {})[key] = noise_level(side, at_32, at_64)
    return settings


def find_unset_noise_levels(config: RunConfig) -> list[tuple[str, str]]:
    """Method and setting of the noise levels that the configuration does not set."""
    return [
        (name, key)
        for name in split_methods(config.method)
        for key in NOISE_LEVELS
        if name in METHODS
        and key in METHODS[name].published.get("tiny-imagenet", {})
        and key not in config.settings.get(name, {})
    ]
