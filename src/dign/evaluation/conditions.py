"""Severities as people write them, on the command line and in grid files."""

from dign.core.errors import UserError


def parse_severities(text: str) -> tuple[int, ...]:
    """'3', '1-5' or '1,3,5' as numbers from 1 to 5, in order.

    >>> parse_severities("1-3,5")
    (1, 2, 3, 5)
    """
    chosen: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        try:
            low, high = int(first), int(last or first)
        except ValueError:
            low = high = 0
        chosen |= set(range(max(low, 0), min(high, 6) + 1)) or {0}  # no more than tells what is outside
    if not chosen or not chosen <= {1, 2, 3, 4, 5}:
        raise UserError(f"'{text}' are not severities: say for example 3, 1-5 or 1,3,5 (from 1 to 5).")
    return tuple(sorted(chosen))
