"""Checks of the values in an untrusted results file."""

from __future__ import annotations

from typing import Any, NoReturn


class BrokenResults(ValueError):
    """Why a results file cannot be used: a phrase that completes 'RUN/results.json is broken: ...'."""


def fail(reason: str) -> NoReturn:
    raise BrokenResults(reason)


def as_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        fail(f"{where} is missing or not an object")
    return value


def is_number(value: Any) -> bool:
    """A number that a float can hold: JSON has integers of any length."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def is_count(value: Any) -> bool:
    return is_whole(value) and value >= 0


def is_percentage(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 100
