"""How long work says how far it is: a function that is told (what, done, total)."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

Report = Callable[[str, int, int | None], None]
"""Called with what is being done, how much is done, and how much there is in all (None where nobody knows).

A `what` that ends in "bytes" counts bytes.
"""


def quiet(what: str, done: int, total: int | None) -> None:
    """Say nothing."""


class TerminalBar:
    """A progress bar on standard error, which appears with the first report and only on a terminal.

    >>> with TerminalBar() as report:
    ...     report("Decoding", 1, 2)
    """

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self.visible = sys.stderr.isatty()

    def __enter__(self) -> TerminalBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None):
        if self._bars is not None:
            self._bars.stop()
            self._bars = None

    def __call__(self, what: str, done: int, total: int | None) -> None:
        if not self.visible:
            return
        if self._bars is None:
            self._bars = _make_bars()
            self._bars.start()
        if what not in self._tasks:
            self._tasks[what] = self._bars.add_task(what, total=total)
        self._bars.update(self._tasks[what], completed=done, total=total)


def _make_bars() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    return Progress(*columns, console=Console(stderr=True))
