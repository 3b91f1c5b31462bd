"""The nineteen common corruptions: batched, seeded, and faithful to the published benchmarks.

Names, families and settings cost nothing to import; torch is loaded only when `corrupt` is first asked for.
"""

from typing import TYPE_CHECKING, Any

from dign.corruptions.settings import PROFILES, SEVERITIES, profile_for

if TYPE_CHECKING:
    from dign.corruptions.engine import corrupt

FAMILIES: dict[str, tuple[str, ...]] = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "gaussian_blur"),
    "weather": ("snow", "frost", "fog", "brightness", "spatter"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression", "saturate"),
}
NAMES: tuple[str, ...] = tuple(name for family in FAMILIES.values() for name in family)

__all__ = ["FAMILIES", "NAMES", "PROFILES", "SEVERITIES", "corrupt", "family_of", "profile_for"]


def family_of(name: str) -> str:
    """The family that a corruption belongs to."""
    return next(family for family, names in FAMILIES.items() if name in names)


def __getattr__(attribute: str) -> Any:
    if attribute == "corrupt":
        from dign.corruptions.engine import corrupt

        return corrupt
    raise AttributeError(f"module 'dign.corruptions' has no attribute '{attribute}'")
