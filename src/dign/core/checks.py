"""Checks of values from arguments, options and untrusted files."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

from dign.core.errors import UserError, unknown_name
from dign.core.files import is_encodable

MAX_CLASSES = 1_000_000
MAX_SIDE = 4096


def find_invalid_facts(facts: dict[str, Any]) -> list[str]:
    """Return which of `classes`, `image_size`, `mean` and `std` are missing or invalid."""
    checks = {
        "classes": _are_classes(facts.get("classes")),
        "image_size": _is_size(facts.get("image_size")),
        "mean": _are_numbers(facts.get("mean"), -1e6),
        "std": _are_numbers(facts.get("std"), 1e-9),
    }
    return [name for name, valid in checks.items() if not valid]


def _are_classes(value: Any) -> bool:
    if not isinstance(value, list) or not 2 <= len(value) <= MAX_CLASSES:
        return False
    return all(isinstance(name, str) and is_encodable(name) for name in value)


def _is_size(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(side) is int and 0 < side <= MAX_SIDE for side in value)
    )


def _are_numbers(value: Any, least: float) -> bool:
    """Three, one for each channel."""
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(type(x) in (int, float) and least <= x <= 1e6 for x in value)
    )


def coerce(value: Any, kind: Any, name: str) -> Any:
    """Convert `value` to the type `kind`: from text, as the command line passes it, or from an integer to a float."""
    options = [option for option in get_args(kind) if option is not type(None)]
    if get_origin(kind) in (Union, UnionType):  # X | None
        return None if value is None or value == "none" else coerce(value, options[0], name)
    if get_origin(kind) is tuple:
        items = value.split(",") if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            raise UserError(f"{name} must be a list, not {value!r}.")
        return tuple(coerce(item, options[0], name) for item in items)
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if kind is bool and isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    try:
        if kind is float and isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
        if kind is int and (type(value) is int or isinstance(value, str)):
            return int(value)
    except (ValueError, OverflowError):
        pass
    if type(value) is kind:
        return value
    wanted = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(kind, str(kind))
    raise UserError(f"{name} must be {wanted}, not {value!r}.")


def check_value(name: str, value: Any, choices: tuple[str, ...] | None, least: float | None) -> None:
    """Raise a `UserError` for a value that is not one of the choices, or less than `least`."""
    if choices and value not in choices:
        raise unknown_name(name, value, choices)
    if least is not None and not least <= value < float("inf"):
        raise UserError(f"{name} must be at least {least}, not {value}.")


def check_integer(minimum: int, **values: int) -> None:
    """Raise a `UserError` that names the first value which is not a whole number of at least `minimum`."""
    for name, value in values.items():
        if type(value) is not int or value < minimum:
            raise UserError(f"{name} must be a whole number of at least {minimum}, not {value!r}.")


def check_at_least(minimum: float, **values: float) -> None:
    """Raise a `UserError` that names the first value which is not a finite number of at least `minimum`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not minimum <= value < float("inf"):
            raise UserError(f"{name} must be a number of at least {minimum}, not {value!r}.")


def check_fraction(**values: float) -> None:
    """Raise a `UserError` that names the first value which is not a number from 0 to 1."""
    check_at_least(0, **values)
    for name, value in values.items():
        if value > 1:
            raise UserError(f"{name} must be a fraction, 0 to 1, not {value!r}.")


def check_tables(settings: Any) -> None:
    """Raise a `UserError` for settings of methods that are not tables."""
    if not isinstance(settings, Mapping) or not all(isinstance(table, Mapping) for table in settings.values()):
        raise UserError("settings must hold a table for each method that it names, as in [settings.dign].")
