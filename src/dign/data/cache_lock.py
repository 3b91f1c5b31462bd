"""One writer at a time for each part of the cache; the others wait for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dign.core.locks import hold_lock
from dign.core.progress import ProgressCallback, ignore_progress


@contextmanager
def locked(path: Path, report: ProgressCallback = ignore_progress) -> Iterator[None]:
    """Hold the lock that belongs to `path` (the file `.NAME.lock` beside it), waiting for it if need be."""

    def waiting() -> None:
        report(f"Waiting for another process that prepares {path.name}", 0, None)

    with hold_lock(path.with_name(f".{path.name}.lock"), waiting):
        yield
