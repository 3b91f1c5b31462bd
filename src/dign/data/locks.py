"""One writer at a time: a lock between processes that the system frees when its holder dies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dign.data.progress import Report, quiet

if os.name == "nt":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path, report: Report = quiet) -> Iterator[None]:
    """Hold the lock that belongs to `path` (the file `.NAME.lock` beside it), waiting for it if need be.

    The lock file stays: to remove it would let two processes each hold a lock of the same name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while True:
            try:
                _try_lock(descriptor)
                break
            except OSError:
                report(f"Waiting for another process that prepares {path.name}", 0, None)
                time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)
