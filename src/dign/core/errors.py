"""What a person did wrong, said in one sentence."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from shlex import quote


class UserError(ValueError):
    """Bad input: its message is one sentence that says what is wrong and what to do.

    The command line prints the message and exits with code 2; it never shows a traceback for one. A message quotes what
    people and files say: it is kept to one line without control characters, of a length that can be read.
    """

    def __init__(self, message: object = "") -> None:
        shown = "".join(" " if char.isspace() else char if char.isprintable() else "\ufffd" for char in str(message))
        super().__init__(shown if len(shown) <= MAX_MESSAGE_LENGTH else f"{shown[:MAX_MESSAGE_LENGTH]}...")


MAX_MESSAGE_LENGTH = 3000
"""Letters of a message: more than any list of names that it may hold."""


class ReportedByRankZero(UserError):
    """A mistake about which another process tells the person: this one just ends."""


def summarize_error(error: BaseException) -> str:
    """The first line of what an error says, or what kind of error it is."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error of torch, on any device, or of Python says that memory ran out."""
    texts = ("out of memory", "can't allocate memory", "not enough memory")
    kinds = ("MemoryError", "OutOfMemoryError")  # the latter is torch's, whom nobody needs to import for this
    return type(error).__name__ in kinds or any(text in str(error) for text in texts)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    """The error for a name that is not in a registry: it names the nearest known one and lists all."""
    choices = sorted(set(known))
    near = find_nearest_name(name, choices)
    hint = f" Did you mean '{near}'?" if near else ""
    return UserError(f"Unknown {kind} '{name}'.{hint} Known: {', '.join(choices)}.")


def find_nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that a person may have meant; None where none is like it."""
    near = get_close_matches(str(name), list(map(str, known)), n=1)
    return near[0] if near else None


def join_names(names: Sequence[str], most: int = 5) -> str:
    """The first few of many names."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def quote_path(path: Path | str) -> str:
    """A path as it is typed in a command: in quotes where it has spaces or the like, and never like an option."""
    return quote(f"./{path}" if str(path).startswith("-") else str(path))
