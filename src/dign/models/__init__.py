"""Architectures by name. Every model takes images in [0,1]: its first layer normalizes."""

from dign.models.libraries import fetch_pretrained, preprocessing_of
from dign.models.normalize import Normalize, Normalized, channel_statistics
from dign.models.preprocessing import Preprocessing
from dign.models.registry import MODELS, build, count_parameters, whiten

__all__ = [
    "MODELS", "Normalize", "Normalized", "Preprocessing", "build", "channel_statistics", "count_parameters",
    "fetch_pretrained", "preprocessing_of", "whiten",
]  # fmt: skip
