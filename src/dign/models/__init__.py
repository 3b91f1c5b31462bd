"""Architectures by name. Every model takes images in [0,1]: its first layer normalizes."""

from dign.models.normalize import Normalize, Normalized, channel_statistics
from dign.models.registry import MODELS, build, count_parameters, import_timm, whiten

__all__ = [
    "MODELS", "Normalize", "Normalized", "build", "channel_statistics", "count_parameters", "import_timm", "whiten",
]  # fmt: skip
