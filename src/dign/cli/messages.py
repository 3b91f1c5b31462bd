"""Messages of the commands: broken between words on a terminal, one line each in a file or a pipe."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import click

from dign.core.text import wrap_words

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 200


def terminal_width() -> int:
    return shutil.get_terminal_size().columns


def say(message: str, *, err: bool = True) -> None:
    """Print a message, by default on standard error."""
    stream = sys.stderr if err else sys.stdout
    click.echo(wrap_words(message, terminal_width()) if stream.isatty() else message, err=err)


def make_table_console(*, err: bool = False) -> Console:
    """A console for tables: as wide as the terminal, or wide enough for whole names in a file or a pipe."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    return Console(stderr=err, width=None if stream.isatty() else PIPE_WIDTH)


def say_on(console: Console, message: str) -> None:
    """Print a message, as plain text, on a console that may be drawing a bar."""
    shown = wrap_words(message, console.width) if console.is_terminal else message
    console.print(shown, highlight=False, markup=False, soft_wrap=True)
