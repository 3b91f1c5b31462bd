"""What a run or a hub folder says of its model, checked before anything is built from it: the file may be anybody's."""

from __future__ import annotations

from typing import Any

from dign.core.files import is_text

MOST_CLASSES = 1_000_000
LARGEST_SIDE = 4096


def unsound_facts(facts: dict[str, Any]) -> list[str]:
    """Which of `classes`, `image_size`, `mean` and `std` are missing or not what they should be."""
    checks = {
        "classes": _are_classes(facts.get("classes")),
        "image_size": _is_size(facts.get("image_size")),
        "mean": _are_numbers(facts.get("mean"), -1e6),
        "std": _are_numbers(facts.get("std"), 1e-9),
    }
    return [name for name, sound in checks.items() if not sound]


def _are_classes(value: Any) -> bool:
    if not isinstance(value, list) or not 2 <= len(value) <= MOST_CLASSES:
        return False
    return all(isinstance(name, str) and is_text(name) for name in value)


def _is_size(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(side) is int and 0 < side <= LARGEST_SIDE for side in value)
    )


def _are_numbers(value: Any, least: float) -> bool:
    """Three, one for each channel."""
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(type(x) in (int, float) and least <= x <= 1e6 for x in value)
    )
