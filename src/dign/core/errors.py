"""Errors that a user can fix, each in one sentence."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from shlex import quote


class UserError(ValueError):
    """Invalid input: the message is one sentence that says what is wrong and what to do.

    The command line prints the message without a traceback and exits with code 2. Messages quote user input and files,
    so they are reduced to one line of limited length without control characters.

    >>> str(UserError("two\\nlines"))
    'two lines'
    """

    def __init__(self, message: object = "") -> None:
        shown = "".join(" " if char.isspace() else char if char.isprintable() else "\ufffd" for char in str(message))
        super().__init__(shown if len(shown) <= MAX_MESSAGE_LENGTH else f"{shown[:MAX_MESSAGE_LENGTH]}...")


MAX_MESSAGE_LENGTH = 3000
"""Characters: more than any list of names in a message."""


class ResumableError(UserError):
    """An error about the run in `path`, which can be resumed."""

    def __init__(self, message: object, path: Path) -> None:
        super().__init__(message)
        self.path = path


class ReportedByRankZero(UserError):
    """An error that rank zero reports: this process ends silently."""


def summarize_error(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if there is none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch, on any device, or of Python means that memory ran out."""
    texts = ("out of memory", "can't allocate memory", "not enough memory")
    kinds = ("MemoryError", "OutOfMemoryError")  # by name, so that torch need not be imported
    return type(error).__name__ in kinds or any(text in str(error) for text in texts)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """Make the error for a name that is not in a registry: it suggests the nearest one and lists all, or 40 of many."""
    choices = sorted(set(known))
    near = find_nearest_name(name, choices)
    hint = f" Did you mean '{near}'?" if near else ""
    return UserError(f"Unknown {kind} '{name}'.{hint} Known: {join_names(choices, most=40)}.")


def find_nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the user may have meant, or None."""
    near = get_close_matches(str(name), list(map(str, known)), n=1)
    return near[0] if near else None


def join_names(names: Sequence[str], most: int = 5) -> str:
    """Join names with commas, the first few of many.

    >>> join_names(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def quote_path(path: Path | str) -> str:
    """Quote a path for a shell command; it never looks like an option.

    >>> quote_path("my runs"), quote_path("-x")
    ("'my runs'", './-x')
    """
    return quote(f"./{path}" if str(path).startswith("-") else str(path))
