"""Where names go in a chart: inside it, and never on top of each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

Box = tuple[float, float, float, float]
"""left, top, right, bottom"""
ELLIPSIS = "…"
_NARROW, _WIDE = set("iljtfrI.,:;'|!()[]{} -"), set("mwMW@%&+=<>")
_UPPER = set("ABCDEFGHJKLNOPQRSTUVXYZ")


def text_width(text: str, size: float = 12.0) -> float:
    """About how wide a text is, in the unit of `size`, in bold sans serif: an upper bound, for fonts differ."""
    return size * sum(
        0.5 if char in _NARROW else 1.1 if char in _WIDE else 0.85 if char in _UPPER else 0.72 for char in text
    )


def shorten(text: str, width: float, size: float = 12.0) -> str:
    """The text, cut where it is wider than `width`.

    >>> shorten("DiGN", 100.0), shorten("an unreasonably long name", 90.0)
    ('DiGN', 'an unreaso…')
    """
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + ELLIPSIS, size) > width:
        text = text[:-1]
    return text.rstrip() + ELLIPSIS


def spread(wanted: Sequence[float], low: float, high: float, gap: float) -> list[float] | None:
    """Heights close to the `wanted` ones, at least `gap` apart, inside [low, high]; None where they do not fit.

    >>> spread([10.0, 11.0, 50.0], 0.0, 60.0, 12.0)
    [10.0, 22.0, 50.0]
    """
    if gap * (len(wanted) - 1) > high - low:
        return None
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [0.0] * len(wanted)
    previous = low - gap
    for index in order:
        placed[index] = previous = max(wanted[index], previous + gap)
    limit = high
    for index in reversed(order):
        placed[index] = min(placed[index], limit)
        limit = placed[index] - gap
    return placed


def overlap(first: Box, second: Box) -> float:
    """The area that two boxes share."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(width, 0.0) * max(height, 0.0)


def is_inside(box: Box, frame: Box) -> bool:
    return box[0] >= frame[0] and box[1] >= frame[1] and box[2] <= frame[2] and box[3] <= frame[3]


def place_beside(
    points: Sequence[tuple[float, float]], texts: Sequence[str], frame: Box, radius: float = 7.0, size: float = 12.0
) -> list[Box | None]:
    """A box for the text of each point, inside `frame`, nearer to it than to any other, and apart from all boxes.

    None where there is no such place: a legend names the point as well.
    """
    taken: list[Box] = [(x - radius, y - radius, x + radius, y + radius) for x, y in points]
    found: list[Box | None] = []
    for (x, y), text in zip(points, texts, strict=True):
        others = [point for point in points if point != (x, y)]
        free = (
            box
            for box in _around(x, y, text_width(text, size), size)
            if _fits(box, frame, taken) and all(_apart(box, x, y) < _apart(box, *other) for other in others)
        )
        box = next(free, None)
        found.append(box)
        if box is not None:
            taken.append(box)
    return found


def _around(x: float, y: float, width: float, size: float) -> Iterable[Box]:
    """Right, left, above, below, and the four corners."""
    lefts = {"right": x + 11, "left": x - 11 - width, "middle": x - width / 2}
    tops = {"level": y - 0.6 * size, "above": y - 9 - size, "below": y + 9}
    order = [("right", "level"), ("left", "level"), ("middle", "above"), ("middle", "below"), ("right", "above"),
             ("right", "below"), ("left", "above"), ("left", "below")]  # fmt: skip
    for column, row in order:
        yield (lefts[column], tops[row], lefts[column] + width, tops[row] + 1.1 * size)


def _apart(box: Box, x: float, y: float) -> float:
    """The distance of a point from a box."""
    return math.hypot(max(box[0] - x, 0.0, x - box[2]), max(box[1] - y, 0.0, y - box[3]))


def _fits(box: Box, frame: Box, taken: Iterable[Box]) -> bool:
    return is_inside(box, frame) and not any(overlap(box, other) for other in taken)
