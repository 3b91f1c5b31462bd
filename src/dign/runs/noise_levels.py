"""Noise levels for images that no published setting exists for: they follow the image size."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dign.methods import METHODS
from dign.runs.config import RunConfig

NOISE_LEVELS = ("sigma_max", "sigma")
"""Settings of methods that are levels of noise, and follow the image size."""


def noise_level(side: int, at_32: float, at_64: float) -> float:
    """A noise level for images whose shorter side has `side` pixels, from the published ones for 32 and 64 pixels.

    Linear in between, and the nearest of the two outside, since nothing is published there: larger images bear more
    noise, but how much more is a guess that we do not make.

    >>> [noise_level(side, 0.2, 0.6) for side in (16, 32, 48, 64, 224)]
    [0.2, 0.2, 0.4, 0.6, 0.6]
    """
    share = min(max((side - 32) / 32, 0.0), 1.0)
    return round(at_32 + share * (at_64 - at_32), 4)


def with_noise_levels(config: RunConfig, side: int) -> dict[str, dict[str, Any]]:
    """The settings of the configuration's methods, with a noise level for the image size where none is set."""
    settings = {name: dict(table) for name, table in config.settings.items()}
    for name, key in unset_noise_levels(config):
        kind = METHODS[name]
        default = next(spec.default for spec in fields(kind) if spec.name == key)
        settings.setdefault(name, {})[key] = noise_level(side, default, kind.published["tiny-imagenet"][key])
    return settings


def unset_noise_levels(config: RunConfig) -> list[tuple[str, str]]:
    """Method and setting of the noise levels that the configuration leaves open."""
    wanted = [name.strip() for name in config.method.split("+")]
    return [
        (name, key)
        for name in wanted
        for key in NOISE_LEVELS
        if name in METHODS
        and key in METHODS[name].published.get("tiny-imagenet", {})
        and key not in config.settings.get(name, {})
    ]
