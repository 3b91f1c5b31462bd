"""Ranges of axes: wide enough that a difference of a point does not look like a cliff."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEAST_ACCURACY_SPAN = 20.0
LEAST_ERROR_SPAN = 5.0
"""Percentage points that an axis spans at least."""


def accuracy_range(values: Sequence[float]) -> tuple[float, float]:
    """From the ten below the smallest percentage to 100, over at least 20 points; from 0 where that is not far.

    >>> accuracy_range([43.0, 97.0]), accuracy_range([97.5, 98.1]), accuracy_range([25.0])
    ((40.0, 100.0), (80.0, 100.0), (0.0, 100.0))
    """
    low = 10.0 * math.floor((min(values, default=0.0) - 2) / 10)
    return (0.0 if low <= 20 else min(low, 100.0 - LEAST_ACCURACY_SPAN)), 100.0


def error_range(values: Sequence[float]) -> tuple[float, float]:
    """From 0 to a little above the largest percentage, over at least 5 points.

    >>> error_range([0.4, 1.2]), error_range([50.0])
    ((0.0, 5.0), (0.0, 54.0))
    """
    return 0.0, max(1.08 * max(values, default=0.0), LEAST_ERROR_SPAN)


def widen(values: Sequence[float], least: float, low: float = 0.0, high: float = 100.0) -> tuple[float, float]:
    """A range around the values with some air, at least `least` wide, inside [low, high].

    >>> widen([50.0, 60.0], 10.0), widen([99.0, 99.5], 10.0)
    ((48.8, 61.2), (90.0, 100.0))
    """
    first, last = min(values), max(values)
    air = max(0.12 * (last - first), (least - (last - first)) / 2)
    first, last = max(first - air, low), min(last + air, high)
    if last - first < least:
        first, last = (max(low, last - least), last) if last == high else (first, min(high, first + least))
    return first, last
