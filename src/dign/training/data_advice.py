"""Defaults and advice for images that no published setting exists for."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

from dign.data.dataset import DataSet
from dign.methods import METHODS
from dign.runs.config import RunConfig

NOISE_LEVELS = ("sigma_max", "sigma")
"""Settings of methods that are levels of noise, and follow the image size."""
FEW_IMAGES, MUCH_MORE, FEW_STEPS = 50, 10, 200
"""Per class, between classes, in all: rules of thumb below (above) which a person is told. None was measured."""


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


def advice(data: DataSet, steps: int, *, from_nothing: bool = True) -> list[str]:
    """What a person should know about the training images before spending time on them.

    `from_nothing`: whether training begins with random weights, so that trained ones are worth a thought.
    """
    counts = torch.bincount(data.train.labels, minlength=len(data.classes)).tolist()
    fewest, most = min(counts), max(counts)
    rare, frequent = data.classes[counts.index(fewest)], data.classes[counts.index(most)]
    said = []
    if fewest < FEW_IMAGES:
        said.append(
            f"Few images: '{rare}' has {fewest} to train on. Below about {FEW_IMAGES} in a class results differ much "
            f"from seed to seed: {'start from trained weights (--init, --freeze body), and ' if from_nothing else ''}"
            "compare several --seed."
        )
    if most > MUCH_MORE * max(fewest, 1):
        said.append(
            f"Unbalanced classes: '{frequent}' has {most} training images, '{rare}' {fewest}. Accuracy counts images, "
            f"so a model can score well and never answer '{rare}': add images of it, or leave out some of '{frequent}'."
        )
    if steps < FEW_STEPS:
        said.append(
            f"Few steps: {steps} in all is little to learn from. A smaller --batch-size makes more of them in an "
            "epoch, --epochs more of those."
        )
    return said
