"""Locks between processes. The system frees a lock when its holder dies, however that happens; the lock file stays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback, ignore_progress


@contextmanager
def lock_folder(folder: Path, doing: str) -> Iterator[None]:
    """Hold the lock of a folder, the file `.lock` in it.

    Args:
        folder: Created if it does not exist.
        doing: What a holder does with the folder, for the message: "writing to".

    Raises:
        UserError: Another process holds the lock.
    """
    lock = _make_lock(folder / ".lock")
    try:
        held = lock.acquire(blocking=False)
    except Timeout as error:
        raise UserError(f"Another process is {doing} {folder}: wait for it, or choose another folder.") from error
    with held:
        yield


@contextmanager
def wait_for_lock(path: Path, report: ProgressCallback = ignore_progress) -> Iterator[None]:
    """Hold the lock of `path`, the file `.NAME.lock` beside it, after waiting for another process that has it."""
    lock = _make_lock(path.with_name(f".{path.name}.lock"))
    try:
        held = lock.acquire(blocking=False)
    except Timeout:
        report(f"Waiting for another process that prepares {path.name}", 0, None)
        held = lock.acquire(poll_interval=0.1)
    with held:
        yield


def _make_lock(file: Path) -> FileLock:
    file.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(file, thread_local=False)  # whichever thread leaves the context releases the lock
