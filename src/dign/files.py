"""Files that matter are written under a temporary name and renamed: a reader never sees half of one."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dign.errors import UserError


@contextmanager
def replacing(path: Path | str) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it takes `path`'s place, on an exception it goes.

    The temporary name is fixed (`.NAME.partial`), so what a killed process left behind is overwritten by the
    next writer instead of piling up.
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a file that could be replaced: choose another name.")
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        with open(partial, "rb+") as written:
            os.fsync(written.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def write_text(path: Path | str, text: str) -> None:
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def write_json(path: Path | str, value: Any) -> None:
    """Write JSON atomically; NaN is refused, because no other JSON reader would take it back."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")
