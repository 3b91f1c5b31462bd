"""How the published benchmarks store their images, which is part of what they measure; without torch.

Tiny-ImageNet-C and ImageNet-C (and ImageNet-C-bar) are JPEG files of quality 85, CIFAR-10-C is an array. JPEG smooths
noise, most of all in the chroma: at severity 5 it takes a quarter of its standard deviation.
"""

from typing import Literal

from dign.core.errors import UserError

Jpeg = int | Literal["profile"] | None
"""JPEG of this quality after the corruption; "profile": as the published benchmark of the profile; None: no JPEG."""
STORED_QUALITY: dict[str, int | None] = {
    "cifar": None,
    "32-64": None,
    "tiny-imagenet": 85,
    "64-224": 85,
    "imagenet": 85,
}
"""Profile to the quality of the published files; None: not JPEG. In between the step begins at 64 pixels."""
FILE_QUALITY = 85
"""Of files in the layout of folders, where the profile has none."""


def check_jpeg(jpeg: object) -> None:
    """Raise a `UserError` for what is neither a quality, nor "profile", nor None."""
    if jpeg is None or jpeg == "profile" or (type(jpeg) is int and 1 <= jpeg <= 100):
        return
    raise UserError(f"jpeg must be a quality from 1 to 100, 'profile' or None, not {jpeg!r}.")


def choose_quality(jpeg: Jpeg, profile: str) -> int | None:
    """The quality of the JPEG step for images of a profile; None for no such step.

    >>> choose_quality("profile", "tiny-imagenet"), choose_quality("profile", "cifar"), choose_quality(50, "cifar")
    (85, None, 50)
    """
    check_jpeg(jpeg)
    return STORED_QUALITY[profile] if jpeg == "profile" else jpeg


def parse_jpeg(text: str | int) -> Jpeg:
    """'profile', 'none' or a quality, as the command line and grid files have it.

    >>> parse_jpeg("none"), parse_jpeg("85")
    (None, 85)
    """
    if isinstance(text, bool):
        raise UserError(f"invalid jpeg '{text}': expected profile, none, or a quality from 1 to 100.")
    if text in ("profile", "none"):
        return "profile" if text == "profile" else None
    try:
        quality = int(text)
        check_jpeg(quality)
    except (ValueError, TypeError):
        raise UserError(f"invalid jpeg '{text}': expected profile, none, or a quality from 1 to 100.") from None
    return quality
