"""Reliability diagrams with confidence histograms, and accuracy against calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dign.metrics import Calibration
from dign.metrics.calibration_bins import accuracy_intervals
from dign.report.analysis.tables import number
from dign.report.html.charts import WIDEST_LABEL, Axes, marker, number_ticks, svg, tip_text
from dign.report.html.labels import Box, place_beside, shorten
from dign.report.html.markup import tag
from dign.report.scales import error_range, widen

LEAST_ACCURACY_SPREAD = 10.0
"""Percentage points that the scatter's accuracy axis spans at least."""
TENTHS = tuple((value / 4, f"{25 * value}") for value in range(5))


def reliability_diagram(title: str, calibration: Calibration, slot: int, images: int | None = None) -> Markup:
    """Accuracy per confidence bin against the diagonal of perfect calibration, above the histogram of confidences.

    Args:
        title: What it shows.
        calibration: What was counted.
        slot: The color.
        images: How many different images that was (`accuracy_intervals`).
    """
    width, height, histogram = 260.0, 300.0, 62.0
    upper = Axes(width, height - histogram, (0, 1), (0, 1), (8, 10, 8, 40), y_ticks=TENTHS, y_label="Accuracy, %")
    lower = Axes(width, height, (0, 1), (0, 1), (height - histogram, 10, 34, 40), x_ticks=TENTHS,
                 x_label="Confidence, %")  # fmt: skip
    bins = calibration.reliability()
    total = sum(bins["count"])
    intervals = accuracy_intervals(calibration, images)
    largest = max(bins["count"])
    bars, hits = [], []
    for index, (count, confidence, accuracy) in enumerate(zip(*bins.values(), strict=True)):
        interval = intervals[index]
        if interval is None:
            continue
        low, high = index / calibration.bins, (index + 1) / calibration.bins
        left, bar = upper.x(low) + 0.7, upper.x(high) - upper.x(low) - 1.4
        bars += _bin_bars(upper, lower, left, bar, accuracy, confidence, count / largest, faint=count < 0.005 * total)
        low_end, high_end = interval
        middle = left + bar / 2
        bars.append(tag("line", class_="whisker", x1=middle, x2=middle, y1=upper.y(low_end), y2=upper.y(high_end)))
        lines = [
            (None, f"Confidence {100 * low:.0f}–{100 * high:.0f} %", ""),
            (slot, "Accuracy", f"{number(100 * accuracy)} %"),
            (None, "95 % interval", f"{number(100 * low_end)} to {number(100 * high_end)} %"),
            (None, "Mean confidence", f"{number(100 * confidence)} %"),
            (None, "Predictions", f"{count} ({number(100 * count / total)} %)"),
        ]
        hits.append(tag("rect", class_="hit", x=left, y=8, width=bar, height=height - 42, data_tip=tip_text(lines)))
    diagonal = tag("line", class_="diagonal", x1=upper.x(0), y1=upper.y(0), x2=upper.x(1), y2=upper.y(1))
    marks = tag("g", bars, class_=f"s{slot}")
    return svg(width, height, title, upper.frame(), lower.frame(), marks, diagonal, hits)


def _bin_bars(
    upper: Axes, lower: Axes, left: float, width: float, accuracy: float, confidence: float, share: float, faint: bool
) -> list[Markup]:
    """The bar of accuracy, a line at the mean confidence with the gap to it, and the bar of the histogram."""
    top, mean = upper.y(accuracy), upper.y(confidence)
    parts = [tag("rect", class_="bar", x=left, y=top, width=width, height=upper.y(0) - top)]
    if mean < top:
        parts.append(tag("rect", class_="gap", x=left, y=mean, width=width, height=top - mean))
    parts.append(tag("line", class_="mean", x1=left, x2=left + width, y1=mean, y2=mean))
    histogram = tag("rect", class_="bar", x=left, y=lower.y(share), width=width, height=lower.y(0) - lower.y(share))
    return [tag("g", parts, class_="faint" if faint else None), histogram]


@dataclass(frozen=True)
class Spot:
    """A method in the scatter: its mean and its single runs."""

    label: str
    slot: int
    x: float
    y: float
    runs: Sequence[tuple[float, float]]


def scatter(title: str, spots: Sequence[Spot], x_label: str, y_label: str) -> Markup:
    """Each method's mean as a large mark, its seeds as small ones; names go where there is room."""
    width, height = 460.0, 320.0
    x_range = widen([x for spot in spots for x, _ in [*spot.runs, (spot.x, spot.y)]], LEAST_ACCURACY_SPREAD)
    y_range = error_range([y for spot in spots for _, y in [*spot.runs, (spot.x, spot.y)]])
    axes = Axes(width, height, x_range, y_range, (14, 20, 40, 48), number_ticks(*x_range, 6), number_ticks(*y_range),
                x_label, y_label)  # fmt: skip
    marks = []
    for spot in spots:
        small = [tag("circle", class_="small", cx=axes.x(x), cy=axes.y(y), r=2.5) for x, y in spot.runs]
        marks.append(tag("g", small if len(small) > 1 else [], marker(spot.slot, axes.x(spot.x), axes.y(spot.y), 6),
                         class_=f"s{spot.slot}"))  # fmt: skip
    hits = [_spot_hit(axes, spot, x_label, y_label) for spot in spots]
    return svg(width, height, title, axes.frame(), marks, _spot_labels(axes, spots), hits, zoom=1.2)


def _spot_hit(axes: Axes, spot: Spot, x_label: str, y_label: str) -> Markup:
    names = [label.partition(" (")[0] for label in (x_label, y_label)]
    lines = [(spot.slot, spot.label, ""), (None, names[0], number(spot.x)), (None, names[1], number(spot.y))]
    return tag("circle", class_=f"hit s{spot.slot}", cx=axes.x(spot.x), cy=axes.y(spot.y), r=13,
               data_tip=tip_text(lines))  # fmt: skip


def _spot_labels(axes: Axes, spots: Sequence[Spot]) -> list[Markup]:
    texts = [shorten(spot.label, WIDEST_LABEL) for spot in spots]
    _, _, bottom, left = axes.margin
    frame: Box = (left + 2, 2, axes.width - 2, axes.height - bottom - 2)
    boxes = place_beside([(axes.x(spot.x), axes.y(spot.y)) for spot in spots], texts, frame)
    return [
        tag("text", text, class_=f"s{spot.slot} end", x=box[0], y=box[3] - 3)
        for spot, text, box in zip(spots, texts, boxes, strict=True)
        if box is not None
    ]
