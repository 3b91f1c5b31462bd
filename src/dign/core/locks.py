"""A lock between processes that the system frees when its holder dies, however that ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dign.core.errors import UserError

if os.name == "nt":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


BUSY = (BlockingIOError, PermissionError)
"""What systems raise where another process holds a lock: Unix the one, Windows the other."""


class LockHeld(Exception):
    """Another process holds the lock."""


@contextmanager
def hold_lock(file: Path, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock `file`; where another process has it, raise `LockHeld`, or call `waiting` until it is free.

    The file stays: to remove it would let two processes each hold a lock of the same name.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        while not _taken(descriptor):
            if waiting is None:
                raise LockHeld(file)
            waiting()
            time.sleep(0.1)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def lock_folder(folder: Path, doing: str) -> Iterator[None]:
    """Hold the lock of a folder; where another process does, say in one sentence what it is `doing` there."""
    with ExitStack() as stack:
        try:
            stack.enter_context(hold_lock(folder / ".lock"))
        except LockHeld as error:
            raise UserError(f"Another process is {doing} {folder}: wait for it, or choose another folder.") from error
        yield


def _taken(descriptor: int) -> bool:
    try:
        _try_lock(descriptor)
    except BUSY:
        return False
    return True
