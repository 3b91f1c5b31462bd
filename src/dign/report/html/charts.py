"""Charts as inline SVG: axes, lines, reliability diagrams, scatter. Colors come from the page's CSS."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from dign.report.html.labels import shorten, spread, text_width
from dign.report.html.markup import join, tag
from dign.report.palette import marker_of

Tip = Sequence[tuple[int | None, str, str]]
"""Lines of a tooltip: (slot or None, label, value)."""
LABEL_GAP = 13.0
WIDEST_LABEL = 150.0


@dataclass(frozen=True)
class Series:
    label: str
    slot: int
    points: Sequence[tuple[float, float]]
    spread: Sequence[float] | None = None
    """Half width of the band around each point."""
    dash: str = ""
    markers: bool = True


@dataclass(frozen=True)
class Axes:
    """A plotting area with linear scales."""

    width: float
    height: float
    x_range: tuple[float, float]
    y_range: tuple[float, float]
    margin: tuple[float, float, float, float] = (12, 12, 34, 40)
    """top, right, bottom, left"""
    x_ticks: Sequence[tuple[float, str]] = field(default_factory=tuple)
    y_ticks: Sequence[tuple[float, str]] = field(default_factory=tuple)
    x_label: str = ""
    y_label: str = ""
    promise: tuple[float, str] | None = None
    """A height to compare the lines with, and its name."""

    def x(self, value: float) -> float:
        return self._scale(value, self.x_range, self.margin[3], self.width - self.margin[1])

    def y(self, value: float) -> float:
        return self._scale(value, self.y_range, self.height - self.margin[2], self.margin[0])

    @staticmethod
    def _scale(value: float, span: tuple[float, float], start: float, end: float) -> float:
        low, high = span
        share = (value - low) / (high - low) if high > low else 0.5
        return start + (end - start) * share

    def frame(self) -> Markup:
        top, right, bottom, left = self.margin
        parts = []
        for value, label in self.y_ticks:
            y = self.y(value)
            parts.append(tag("line", class_="grid", x1=left, x2=self.width - right, y1=y, y2=y))
            parts.append(tag("text", label, class_="tick", x=left - 6, y=y + 3.5, text_anchor="end"))
        for value, label in self.x_ticks:
            parts.append(tag("text", label, class_="tick", x=self.x(value), y=self.height - bottom + 15,
                             text_anchor="middle"))  # fmt: skip
        base = self.height - bottom
        parts.append(tag("line", class_="axis", x1=left, x2=self.width - right, y1=base, y2=base))
        if self.promise:
            y = self.y(self.promise[0])
            parts.append(tag("line", class_="diagonal", x1=left, x2=self.width - right, y1=y, y2=y))
            parts.append(tag("text", self.promise[1], class_="label", x=left + 4, y=y - 4))
        if self.x_label:
            middle = (left + self.width - right) / 2
            parts.append(tag("text", self.x_label, class_="label", x=middle, y=self.height - 4, text_anchor="middle"))
        if self.y_label:
            parts.append(tag("text", self.y_label, class_="label", x=11, y=(top + base) / 2, text_anchor="middle",
                             transform=f"rotate(-90 11 {(top + base) / 2:.0f})"))  # fmt: skip
        return join(parts)


def svg(width: float, height: float, title: str, *children: object, zoom: float = 1.0) -> Markup:
    """A chart that a keyboard can reach: its marks are visited with the arrow keys (page.js).

    It is as wide as there is room, up to `zoom` times `width` pixels.
    """
    return tag("svg", *children, class_="chart", viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=title,
               tabindex="0", style=f"max-width:{zoom * width:g}px")  # fmt: skip


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """About `count` round numbers inside [low, high]."""
    if not high > low:
        return [low]
    raw = (high - low) / max(count, 1)
    unit = 10 ** math.floor(math.log10(raw))
    factors = (1, 2, 2.5, 5, 10) if unit >= 10 else (1, 2, 5, 10)  # 12.5 is longer than there is room for
    step = min((factor * unit for factor in factors), key=lambda value: abs(value - raw))
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 10) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def number_ticks(low: float, high: float, count: int = 5) -> list[tuple[float, str]]:
    return [(value, f"{value:g}") for value in nice_ticks(low, high, count)]


def marker(slot: int, x: float, y: float, radius: float = 3.2) -> Markup:
    kind, r = marker_of(slot), radius
    if kind == "circle":
        return tag("circle", class_="dot", cx=x, cy=y, r=r)
    if kind == "square":
        return tag("rect", class_="dot", x=x - r * 0.9, y=y - r * 0.9, width=1.8 * r, height=1.8 * r)
    shapes = {
        "triangle": ((0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
        "down": ((0, 1.25), (1.15, -0.85), (-1.15, -0.85)),
        "diamond": ((0, -1.35), (1.35, 0), (0, 1.35), (-1.35, 0)),
        "cross": ((-1.2, -0.5), (-0.5, -1.2), (0, -0.7), (0.5, -1.2), (1.2, -0.5), (0.7, 0), (1.2, 0.5), (0.5, 1.2),
                  (0, 0.7), (-0.5, 1.2), (-1.2, 0.5), (-0.7, 0)),
    }  # fmt: skip
    return tag("polygon", class_="dot", points=_points([(x + r * a, y + r * b) for a, b in shapes[kind]]))


def line_chart(
    title: str,
    axes: Axes,
    series: Sequence[Series],
    tip: Callable[[float], Tip] | None = None,
    end_labels: bool = False,
) -> Markup:
    """Lines with bands; `tip` gives the numbers at an x of the first series for the tooltip there."""
    parts = [axes.frame()]
    parts += [_band(axes, one) for one in series if one.spread and any(one.spread)]
    parts += [_line(axes, one) for one in series]
    if end_labels:
        parts += _end_labels(axes, series)
    if tip:
        places = sorted({x for one in series for x, _ in one.points})
        parts += _hover_strips(axes, places, tip)
    return svg(axes.width, axes.height, title, parts, zoom=1.4)


def _line(axes: Axes, series: Series) -> Markup:
    points = [(axes.x(x), axes.y(y)) for x, y in series.points]
    line = tag("polyline", class_="line", points=_points(points), stroke_dasharray=series.dash or None)
    dots = [marker(series.slot, x, y) for x, y in points] if series.markers else []
    return tag("g", line, dots, class_=f"s{series.slot}")


def _band(axes: Axes, series: Series) -> Markup:
    pairs = list(zip(series.points, series.spread or (), strict=True))
    upper = [(axes.x(x), axes.y(min(y + spread, axes.y_range[1]))) for (x, y), spread in pairs]
    lower = [(axes.x(x), axes.y(max(y - spread, axes.y_range[0]))) for (x, y), spread in reversed(pairs)]
    return tag("g", tag("polygon", class_="band", points=_points(upper + lower)), class_=f"s{series.slot}")


def end_label_room(labels: Sequence[str]) -> float:
    """The right margin that holds these names at the ends of lines."""
    return 10.0 + min(max((text_width(label) for label in labels), default=0.0), WIDEST_LABEL)


def _end_labels(axes: Axes, series: Sequence[Series]) -> list[Markup]:
    """Names at the right end of the lines, pushed apart; none where there are too many, for there is a legend.

    A line that ends earlier has none: there it would seem to go on.
    """
    end = max((x for one in series for x, _ in one.points), default=0.0)
    lines = [one for one in series if one.points and one.points[-1][0] == end]
    wanted = [axes.y(one.points[-1][1]) for one in lines]
    heights = spread(wanted, axes.margin[0], axes.height - axes.margin[2], LABEL_GAP)
    x = axes.width - axes.margin[1] + 8
    return [
        tag("text", shorten(one.label, axes.width - x), class_=f"s{one.slot} end", x=x, y=y + 4)
        for one, y in zip(lines, heights or (), strict=False)
    ]


def _hover_strips(axes: Axes, places: Sequence[float], tip: Callable[[float], Tip]) -> list[Markup]:
    """Invisible strips, each reaching half way to its neighbors; the page shows their numbers."""
    top, right, bottom, left = axes.margin
    xs = [axes.x(place) for place in places]
    strips = []
    for index, place in enumerate(places):
        start = left if index == 0 else (xs[index - 1] + xs[index]) / 2
        end = axes.width - right if index == len(xs) - 1 else (xs[index] + xs[index + 1]) / 2
        strips.append(tag("rect", class_="hit", x=start, y=top, width=max(end - start, 1.0),
                          height=axes.height - top - bottom, data_tip=tip_text(tip(place))))  # fmt: skip
    return strips


def tip_text(lines: Tip) -> str:
    """What page.js turns into a tooltip: a line per entry, fields separated by tabs."""
    clean = [(slot, label.replace("\t", " "), value.replace("\t", " ")) for slot, label, value in lines]
    return "\n".join(f"{'' if slot is None else slot}\t{label}\t{value}" for slot, label, value in clean)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
