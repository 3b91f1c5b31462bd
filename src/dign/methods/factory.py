"""Methods from names and settings, as a configuration has them."""

from collections.abc import Mapping
from dataclasses import fields
from functools import reduce
from operator import add
from typing import Any, get_type_hints

from dign.core.checks import check_tables, coerce
from dign.core.errors import UserError, unknown_name
from dign.methods import METHODS
from dign.methods.base import Method


def make_method(
    names: str,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    data: str = "",
    label_smoothing: float = 0.0,
) -> Method:
    """Make a method, or a sum of methods, from its name.

    Args:
        names: One name of `dign.methods.METHODS`, or several joined by "+": "dign+augmix".
        settings: Settings by method name. Those of methods not in `names` are ignored, so that one file can serve
            several methods. What the parts of a sum share (`together`) may be set for one of them only.
        data: The data set, whose published settings are the defaults.
        label_smoothing: Label smoothing, unless `settings` has it.

    Returns:
        The method.

    Raises:
        UserError: A name or a setting is unknown, or a value is out of range.

    >>> make_method("dign", {"dign": {"weight": 1}}, data="tiny-imagenet")  # doctest: +ELLIPSIS
    DiGN(... sigma_max=0.6, weight=1.0, samples=3, ...)
    """
    wanted = [name.strip() for name in names.split("+")]
    settings = settings or {}
    check_tables(settings)
    for name in [*wanted, *settings]:
        if name not in METHODS:
            raise unknown_name("method", name, METHODS)
    common: dict[str, Any] = {"label_smoothing": label_smoothing}
    shared = [spec.name for spec in fields(Method)]
    for name in wanted:
        common |= {key: value for key, value in settings.get(name, {}).items() if key in shared}
    return reduce(add, [_make_one(name, {**common, **settings.get(name, {})}, data) for name in wanted])


def _make_one(name: str, settings: Mapping[str, Any], data: str) -> Method:
    kind = METHODS[name]
    hints = get_type_hints(kind)
    known = [spec.name for spec in fields(kind)]
    values: dict[str, Any] = dict(kind.published.get(data, {}))
    for key, value in settings.items():
        if key not in known:
            raise unknown_name(f"setting of {name}", key, known)
        values[key] = coerce(value, hints[key], f"{name}.{key}")
    if not 0 <= values["label_smoothing"] < 1:
        raise UserError(f"{name}.label_smoothing must be at least 0 and below 1, not {values['label_smoothing']}.")
    return kind(**values)


def settings_of(method: Method) -> dict[str, dict[str, Any]]:
    """All settings of a method's parts, by method name: `make_method(method.key, settings_of(method)) == method`.

    >>> from dign.methods import RSE
    >>> settings_of(RSE(sigma=0.2))
    {'rse': {'label_smoothing': 0.0, 'together': True, 'sigma': 0.2, 'ensemble': 10}}
    """
    return {part.key: {spec.name: getattr(part, spec.name) for spec in fields(part)} for part in method.parts}


def assign_options(names: str, options: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Sort options such as `sigma_max` or `dign.sigma_max` to the methods of `names` that they belong to.

    Args:
        names: The method, as in `make_method`.
        options: Values by setting, or by method and setting where several methods have a setting of that name.

    Raises:
        UserError: No method of `names` has the setting, or several have.

    >>> assign_options("dign+augmix", {"sigma_max": "0.1", "augmix.weight": "6"})
    {'dign': {'sigma_max': '0.1'}, 'augmix': {'weight': '6'}}
    """
    wanted = [name.strip() for name in names.split("+") if name.strip() in METHODS]
    common = {spec.name for spec in fields(Method)}
    assigned: dict[str, dict[str, str]] = {}
    for option, value in options.items():
        owner, _, key = option.rpartition(".")
        if owner and owner not in wanted:
            raise UserError(f"{option} is given, but the method is {names}: remove it, or add {owner} to the method.")
        owners = [owner] if owner else [name for name in wanted if key in {spec.name for spec in fields(METHODS[name])}]
        if len(owners) > 1 and key not in common:
            choices = " or ".join(f"{name}.{key}" for name in owners)
            raise UserError(f"{key} is ambiguous, several methods of {names} have it: use {choices}.")
        if not owners:
            known = [spec.name.replace("_", "-") for name in wanted for spec in fields(METHODS[name])]
            raise unknown_name(f"option or setting of {names}", key.replace("_", "-"), known)
        for name in owners:
            assigned.setdefault(name, {})[key] = value
    return assigned
