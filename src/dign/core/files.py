"""Write files under a temporary name and rename them, and read untrusted ones: a reader never sees half a file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dign.core.errors import UserError

if TYPE_CHECKING:
    import numpy as np


@contextmanager
def replace_file(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which replaces `path` if the block succeeds and is removed if not.

    The temporary name is fixed (`.NAME.partial`): the next writer overwrites what a killed process left behind. The
    file gets the permissions of any new file, whatever the writer set (safetensors: none for others).

    Raises:
        UserError: `path` exists and is not a regular file.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file: choose another name.")
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        mode = _create_new(partial)
        yield partial
        with open(partial, "rb+") as written:
            os.fsync(written.fileno())
        if partial.stat().st_mode != mode:
            partial.chmod(stat.S_IMODE(mode))
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _create_new(path: Path) -> int:
    """Create an empty file in place of anything there (a link would be followed); returns its mode."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        return os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)


def read_limited(path: Path | str, largest: int) -> bytes:
    """Read an untrusted file; one that is too large, or not a regular file (a pipe, a device), is a `ValueError`."""
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is not a file")
    if about.st_size > largest:
        raise ValueError(f"it is larger than {largest / 2**20:g} MB")
    return Path(path).read_bytes()


MAX_JSON_SIZE = 64 * 2**20
MAX_DEPTH = 64
"""Levels of nested tables and lists: no file of dign has more than ten."""


def read_json(path: Path | str, largest: int = MAX_JSON_SIZE) -> Any:
    """Read JSON from an untrusted file; anything wrong with it is an `OSError` or a `ValueError`."""
    return parse_json(read_limited(path, largest))


def parse_json(text: str | bytes) -> Any:
    """Parse untrusted JSON; a `ValueError` if it is invalid, contains NaN, or is nested too deeply."""
    try:
        value = json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    check_depth(value)
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def check_depth(value: Any) -> None:
    """Raise a `ValueError` for tables and lists nested so deeply that recursing through them could fail."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [item for part in level for item in _inside(part)]
        if not level:
            return
    raise ValueError("it is nested too deeply")


def _inside(part: Any) -> list[Any]:
    """The tables and lists in a table or list."""
    items = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [item for item in items if isinstance(item, dict | list)]


def map_array(path: Path | str, mode: Literal["r", "c"] = "r") -> np.ndarray:
    """Map an untrusted .npy file into memory; nothing is unpickled.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a .npy file, or truncated.
    """
    import numpy as np

    try:
        array: np.ndarray = np.load(path, mmap_mode=mode, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy's header parser raises anything
        raise ValueError("it is truncated or not a .npy file") from error
    if not isinstance(array, np.ndarray):  # an archive of arrays
        raise ValueError("it is not a .npy file")
    return array


def write_text(path: Path | str, text: str) -> None:
    """Write text atomically."""
    with replace_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write JSON atomically; NaN is refused, because other JSON readers reject it."""
    write_text(path, format_json(value) + "\n")


def format_json(value: Any, indent: int = 0) -> str:
    """JSON to read and to compare by line: a list or table of plain values is one line, anything else one per entry.

    >>> print(format_json({"name": "fog", "severities": {"1": [7, 1, 0], "3": []}}))
    {
     "name": "fog",
     "severities": {
      "1": [7, 1, 0],
      "3": []
     }
    }
    """
    is_table = isinstance(value, dict)
    parts = value.values() if is_table else value if isinstance(value, list | tuple) else ()
    if not any(isinstance(part, dict | list | tuple) for part in parts):
        return json.dumps(value, allow_nan=False)
    lines = [format_json(part, indent + 1) for part in parts]
    if is_table:  # a key that is a number becomes a string, as everywhere in JSON
        keys = (key if isinstance(key, str) else json.dumps(key, allow_nan=False) for key in value)
        lines = [f"{json.dumps(key)}: {line}" for key, line in zip(keys, lines, strict=True)]
    space = "\n" + " " * indent
    body = ",".join(f"{space} {line}" for line in lines)
    return f"{{{body}{space}}}" if is_table else f"[{body}{space}]"


def is_encodable(name: str) -> bool:
    """Whether a name can be encoded: JSON and paths may contain lone surrogates, which cannot."""
    try:
        name.encode()
        return True
    except UnicodeEncodeError:
        return False
