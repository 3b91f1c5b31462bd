"""Stopping between two steps: Ctrl-C and SIGTERM are noted first and handled later."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """Training was stopped by a signal, after a checkpoint was saved."""


@contextmanager
def catch_signals() -> Iterator[list[int]]:
    """Collect Ctrl-C and SIGTERM in the list that this yields; the same signal a second time interrupts at once.

    One of each counts as one request: a parent process may forward the terminal's Ctrl-C as SIGTERM.
    """
    received: list[int] = []

    def note(number: int, frame: object) -> None:
        if number in received:
            raise KeyboardInterrupt
        received.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: its owner stops it
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
