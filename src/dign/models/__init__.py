"""Architectures by name. Every model takes images in [0,1]: its first layer normalizes."""

from dign.models.libraries import fetch_pretrained
from dign.models.normalize import (
    Normalize,
    Normalized,
    Standardize,
    channel_statistics,
    measure_channels,
    spread_indices,
)
from dign.models.preprocessing import Preprocessing
from dign.models.registry import MODELS, build, count_parameters, find_preprocessing, whiten

__all__ = [
    "MODELS", "Normalize", "Normalized", "Preprocessing", "Standardize", "build", "channel_statistics",
    "count_parameters", "fetch_pretrained", "find_preprocessing", "measure_channels", "spread_indices", "whiten",
]  # fmt: skip
