"""Named starting points of a run's settings, and what they change where training starts from weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dign.data.names import PICTURE_PREFIXES

FINE_TUNING_RATE = 0.1
"""The share of a preset's learning rate that is the default with `init`: trained weights want smaller steps."""

FINE_TUNING: dict[str, dict[str, Any]] = {
    # measured on validation photographs: results/photos
    "photos": {
        "lr": 0.003,
        "head_lr": 10.0,
        "freeze_norms": True,
        "settings": {"dign": {"sigma_max": 0.2, "weight": 1.0, "samples": 1}},
    },
}
"""What is different in a preset with `init`, beside that."""

SCALED_PRESETS = ("laptop", "photos")
"""Presets for images of any size and number, whose learning rate follows the batch size."""

PHOTOGRAPH_SIZE = 96
"""Pixels from which on the images of a folder are taken for photographs."""

PRESETS: dict[str, dict[str, Any]] = {
    "paper": {},
    "photos": {
        "model": "fastnet",
        "epochs": 0,
        "batch_size": 32,
        "lr": 0.005,  # measured with fastnet at 128 pixels: 0.02 learns worse, 0.05 diverges
        "schedule": "one-cycle",
        "scale": 0.25,
        "crop_fraction": 0.875,
        "crop": 0,
        "jitter": 0.25,
        "rotation": 0.0,
        "validate_every": 1,
    },
    "laptop": {
        "model": "fastnet",
        "epochs": 10,
        "batch_size": 256,
        "lr": 0.05,
        "schedule": "one-cycle",
        "crop": 2,
        "jitter": 0.0,
        "rotation": 0.0,
        "validate_every": 1,
    },
    "fast": {
        "model": "fastnet",
        "epochs": 6,
        "batch_size": 500,
        "optimizer": "orthogonal",
        "lr": 0.12,  # measured with DiGN: 0.07 and 0.24 learn worse (results/rivals-cifar10)
        "momentum": 0.6,
        "weight_decay": 0.0,
        "schedule": "one-cycle",
        "crop": 2,
        "alternate": True,
        "jitter": 0.0,
        "rotation": 0.0,
        "validate_every": 1,
        # measured: results/laptop-cifar10
        "settings": {"dign": {"sigma_max": 0.1, "weight": 1.0, "samples": 1, "ramp": 0.25, "together": False}},
    },
    "digits": {
        "model": "tinynet",
        "epochs": 30,
        "batch_size": 64,
        "lr": 0.1,
        "schedule": "one-cycle",
        "crop": 1,
        "flip": False,
        "jitter": 0.0,
        "rotation": 5.0,
    },
}
"""Named starting points: the published recipe, one for photographs, two for a CPU (few images, many images), and one
for the digits."""


def choose_preset(values: Mapping[str, Any]) -> str:
    """The preset where none is named."""
    data, size = values.get("data"), values.get("size", 0)
    if data == "digits":
        return "digits"
    has_pictures = isinstance(data, str) and data.startswith(PICTURE_PREFIXES)
    return "photos" if has_pictures and isinstance(size, int) and size >= PHOTOGRAPH_SIZE else "paper"
