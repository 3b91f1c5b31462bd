"""Files that matter are written under a temporary name and renamed: a reader never sees half of one."""

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
    """Yield a temporary path beside `path`; on success it takes `path`'s place, on an exception it goes.

    The temporary name is fixed (`.NAME.partial`), so what a killed process left behind is overwritten by the
    next writer instead of piling up. The file has the permissions of any new file, whatever the writer gave it
    (safetensors: none to others).
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a file that could be replaced: choose another name.")
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        usual = _created_anew(partial)
        yield partial
        with open(partial, "rb+") as written:
            os.fsync(written.fileno())
        if partial.stat().st_mode != usual:
            partial.chmod(stat.S_IMODE(usual))
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _created_anew(path: Path) -> int:
    """Make an empty file, in place of what may lie there (a link would be written through); returns its mode."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        return os.fstat(descriptor).st_mode
    finally:
        os.close(descriptor)


def read_limited(path: Path | str, largest: int) -> bytes:
    """A file that may be anybody's; one that is too large, or never ends (a pipe, a device), is a `ValueError`."""
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise ValueError("it is not a file")
    if about.st_size > largest:
        raise ValueError(f"it is larger than {largest / 2**20:g} MB")
    return Path(path).read_bytes()


MAX_JSON_SIZE = 64 * 2**20
MAX_DEPTH = 64
"""Levels of tables and lists in one another: no file of ours has more than ten."""


def read_json(path: Path | str, largest: int = MAX_JSON_SIZE) -> Any:
    """JSON from a file that may be anybody's; what is wrong with it is an `OSError` or a `ValueError`."""
    return parse_json(read_limited(path, largest))


def parse_json(text: str | bytes) -> Any:
    """JSON that may be anybody's; a `ValueError` says that it is none, holds NaN, or is nested too deeply."""
    try:
        value = json.loads(text if isinstance(text, str) else text.decode(), parse_constant=_refuse)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    check_depth(value)
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def check_depth(value: Any) -> None:
    """Raise a `ValueError` for tables and lists that are nested too deeply: whoever walks through them recurses."""
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
    """Map a .npy file that may be anybody's into memory; nothing is unpickled. What is wrong is an `OSError` or a
    `ValueError`."""
    import numpy as np

    try:
        array: np.ndarray = np.load(path, mmap_mode=mode, allow_pickle=False)
    except OSError:
        raise
    except Exception as error:  # NumPy's parser of headers fails in many ways
        raise ValueError("it is truncated or not a .npy file") from error
    if not isinstance(array, np.ndarray):  # an archive of arrays
        raise ValueError("it is not a .npy file")
    return array


def write_text(path: Path | str, text: str) -> None:
    with replace_file(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write JSON atomically; NaN is refused, because no other JSON reader would take it back."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def is_encodable(name: str) -> bool:
    """Whether it can be written anywhere: JSON and paths can hold halves of characters, which cannot."""
    try:
        name.encode()
        return True
    except UnicodeEncodeError:
        return False
