"""TOML of a run or a grid, read as untrusted text and written back."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from dign.core.errors import UserError
from dign.core.files import check_depth, read_limited

LARGEST_TOML = 2**20


def read_toml(path: Path | str) -> dict[str, Any]:
    """Read a configuration file as a mapping."""
    try:
        text = read_limited(path, LARGEST_TOML)
    except OSError as error:
        raise UserError(f"Cannot read the configuration file {path}: {error.strerror}.") from error
    except ValueError as error:
        raise UserError(f"{path} is not a configuration file: {error}.") from error
    return parse_toml(text, str(path))


def parse_toml(text: str | bytes, what: str) -> dict[str, Any]:
    """Parse an untrusted TOML text; `what` names it in errors."""
    if len(text) > LARGEST_TOML:
        raise UserError(f"{what} is not a configuration: it is larger than 1 MB.")
    try:
        tables = tomllib.loads(text.decode() if isinstance(text, bytes) else text)
        check_depth(tables)
        _check_numbers(tables)
        return tables
    except RecursionError as error:
        raise UserError(f"{what} is not valid TOML: it is nested too deeply.") from error
    except ValueError as error:
        raise UserError(f"{what} is not valid TOML: {error}.") from error


def _check_numbers(value: Any) -> None:
    """Refuse whole numbers beyond TOML's 64 bits: Python cannot even print very long ones."""
    if type(value) is int and abs(value) > 2**64:
        raise ValueError("a number in it has more than 64 bits")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_numbers(item)


def format_toml(value: Any) -> str:
    """A string, a number, a boolean or a list of them, as TOML writes it."""
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(format_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # which TOML wants escaped
