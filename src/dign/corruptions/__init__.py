"""The nineteen common corruptions: batched, seeded, and faithful to the published benchmarks.

Names, families and settings cost nothing to import; torch is loaded only when `corrupt` is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dign.corruptions.settings import PROFILES, SEVERITIES, profile_for

if TYPE_CHECKING:
    from dign.corruptions.benchmark.read import open_benchmark, write_benchmark
    from dign.corruptions.engine import corrupt
    from dign.corruptions.frosting import frost_source

FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
NAMES: tuple[str, ...] = tuple(name for family in FAMILIES.values() for name in family)

_HOMES = {
    "corrupt": "engine",
    "frost_source": "frosting",
    "open_benchmark": "benchmark.read",
    "write_benchmark": "benchmark.write",
}

__all__ = [
    "FAMILIES",
    "NAMES",
    "PROFILES",
    "SEVERITIES",
    "corrupt",
    "family_of",
    "frost_source",
    "open_benchmark",
    "profile_for",
    "write_benchmark",
]


def family_of(name: str) -> str:
    """The family that a corruption belongs to."""
    return next(family for family, names in FAMILIES.items() if name in names)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
