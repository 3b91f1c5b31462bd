"""Text that users or untrusted files supply, made fit to be shown."""

from __future__ import annotations

import re
import textwrap
import unicodedata

MAX_TEXT = 120


def clean_text(value: object, longest: int = MAX_TEXT) -> str:
    """A string fit to be shown: no control or direction-changing characters, at most `longest` letters.

    Whoever puts it on a page, in a terminal or in a table still has to escape it for that place.

    >>> clean_text("a\\x1b[31m b")
    'a [31m b'
    """
    text = "".join(" " if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"} else char for char in str(value))
    text = " ".join(text.split())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def wrap_words(text: str, width: int) -> str:
    """Break lines between words at `width` columns, never inside a word or a command in backticks.

    >>> print(wrap_words("To measure it, type `dign evaluate runs/a` now.", 24))
    To measure it, type
    `dign evaluate runs/a`
    now.
    """
    kept = re.sub(r"`[^`]*`", lambda command: command[0].replace(" ", "\0"), text)
    lines = [
        textwrap.fill(line, max(width, 1), break_long_words=False, break_on_hyphens=False, replace_whitespace=False)
        for line in kept.split("\n")
    ]
    return "\n".join(lines).replace("\0", " ")


def format_bytes(count: float) -> str:
    """A number of bytes, as people say it.

    >>> format_bytes(850), format_bytes(129_761_280), format_bytes(3.1e9)
    ('1 kB', '130 MB', '3.1 GB')
    """
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    return f"{count / 1e6:.0f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def escape_mathtext(text: str) -> str:
    """Text for a figure: matplotlib would take a dollar for the start of a formula."""
    return text.replace("$", r"\$")
