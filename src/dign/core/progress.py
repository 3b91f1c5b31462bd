"""Progress of long work: a callback that is told (what, done, total)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

ProgressCallback = Callable[[str, int, int | None], None]
"""Called with what is being done, how much of it is done, and the total (None if unknown).

A `what` that ends in ", bytes" counts bytes; one with nothing done and no total is a remark.
"""


def ignore_progress(what: str, done: int, total: int | None) -> None:
    """Do nothing."""


class TerminalBar:
    """A progress bar on standard error, which appears with the first report and only on a terminal.

    Args:
        visible: Whether anything is drawn.
        delay: Seconds in which nothing is drawn, for work that is usually short.

    >>> with TerminalBar() as report:
    ...     report("Decoding", 1, 2)
    """

    def __init__(self, visible: bool = True, delay: float = 0.0) -> None:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self.visible = visible and sys.stderr.isatty()
        self._from = time.monotonic() + delay

    def __enter__(self) -> TerminalBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if not self.visible or time.monotonic() < self._from:
            return
        if self._bars is None and not self._start():
            return
        if total is None and done == 0:
            self._note(what)
            return
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what.removesuffix(", bytes"), total=total, amount="")
        self._bars.update(self._tasks[what], completed=done, total=total, amount=_amount(what, done, total))

    def _start(self) -> bool:
        """Start drawing; False, permanently, if another bar already draws on the terminal."""
        from rich.errors import LiveError

        bars = _make_bars()
        try:
            bars.start()
        except LiveError:
            self.visible = False
            return False
        self._bars = bars
        return True

    def _note(self, what: str) -> None:
        if what not in self._tasks:
            self._tasks[what] = None
            self._bars.console.print(what, markup=False, highlight=False)


def _make_bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    description, amount = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[amount]}")
    return Progress(description, BarColumn(), amount, TimeRemainingColumn(), console=Console(stderr=True))


def _amount(what: str, done: int, total: int | None) -> str:
    if what.endswith("bytes"):
        return f"{done / 1e6:.0f} of {total / 1e6:.0f} MB" if total else f"{done / 1e6:.0f} MB"
    return f"{done} of {total}" if total else f"{done}"
