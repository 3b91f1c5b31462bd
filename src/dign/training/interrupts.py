"""Stopping at a moment of our choosing: Ctrl-C and SIGTERM are noted first and acted on later."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupted(Exception):
    """Training was stopped from outside, after saving where it was."""


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Turn the first Ctrl-C or SIGTERM into an entry of the list this yields; the same a second time acts at once.

    One of each is one wish: whoever started the process may pass a Ctrl-C on as SIGTERM, beside the terminal.
    """
    received: list[int] = []

    def note(number: int, frame: object) -> None:
        if number in received:
            raise KeyboardInterrupt
        received.append(number)

    try:
        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: whoever runs the thread stops it
        yield received
        return
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
