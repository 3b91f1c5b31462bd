"""Results as a figure, and the drawing that it shares with the report's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dign.core.text import escape_mathtext
from dign.metrics import Calibration
from dign.metrics.aggregation import pool
from dign.metrics.calibration_bins import accuracy_intervals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dign.evaluation.results import Results

INK, SOFT, RULE = "#1b1d21", "#5b606a", "#dfdcd4"
COLORS = {"noise": "#c2410c", "blur": "#1d4ed8", "weather": "#15803d", "digital": "#7e22ce"}
OTHER = "#475569"


def draw_results(results: Results) -> Figure:
    """Accuracy by severity, one line for each family, and reliability diagrams, clean and pooled over corruptions."""
    from matplotlib.figure import Figure

    conditions = {
        (name, severity): condition.calibration
        for name, corruption in results.corruptions.items()
        for severity, condition in corruption.severities.items()
    }
    diagrams = {"Clean": results.clean.calibration, "Under corruptions": pool(conditions)}
    shown = {title: calibration for title, calibration in diagrams.items() if calibration is not None}
    figure = Figure(figsize=(5.2 + 3.1 * len(shown), 3.6), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 1 + len(shown), width_ratios=[1.7, *([1] * len(shown))], squeeze=False)[0]
    _draw_severities(axes[0], results)
    for place, (title, calibration) in zip(axes[1:], shown.items(), strict=True):
        images, ece = results.evaluation.images, calibration.compute().ece
        draw_reliability(place, calibration, OTHER, f"{title}: ECE {ece:.1f} %", images)
    figure.suptitle(
        escape_mathtext(f"{results.run.title} on {results.run.data}"), x=0.01, ha="left", fontweight="bold", fontsize=11
    )
    return figure


def _draw_severities(axes: Axes, results: Results) -> None:
    severities = sorted({severity for each in results.corruptions.values() for severity in each.severities})
    for family in dict.fromkeys(each.family for each in results.corruptions.values()):
        members = [each for each in results.corruptions.values() if each.family == family]
        points = [(0, results.clean.accuracy)]
        for severity in severities:
            known = [each.accuracies[severity] for each in members if severity in each.accuracies]
            points += [(severity, sum(known) / len(known))] if known else []
        color = COLORS.get(family, OTHER)
        axes.plot(*zip(*points, strict=True), color=color, marker="o", markersize=4, label=escape_mathtext(family))
    if not results.corruptions:
        axes.plot([0], [results.clean.accuracy], color=OTHER, marker="o")
    axes.set_xticks([0, *severities], ["clean", *map(str, severities)])
    axes.set_xlabel("Severity")
    axes.set_ylabel("Accuracy, %")
    axes.set_ylim(0, 100)
    axes.grid(axis="y", color=RULE, linewidth=0.7)
    if results.corruptions:
        axes.legend(frameon=False)
    strip_frame(axes)


def draw_reliability(axes: Axes, calibration: Calibration, color: str, title: str, images: int | None) -> None:
    """Accuracy per confidence bin with its 95 % interval and the overconfidence above it; bins with few are pale.

    Intervals count each of the so many `images`, if they are known, once: under another corruption it says little new.
    """
    bins = calibration.reliability()
    width = 100 / calibration.bins
    total = sum(bins["count"])
    intervals = accuracy_intervals(calibration, images)
    for index, (count, confidence, accuracy) in enumerate(zip(*bins.values(), strict=True)):
        interval = intervals[index]
        if interval is None:
            continue
        left, strength = index * width, 1.0 if count >= 0.005 * total else 0.3
        overconfidence = 100 * max(confidence - accuracy, 0.0)
        for height, bottom, alpha in ((100 * accuracy, 0.0, 0.8), (overconfidence, 100 * accuracy, 0.22)):
            axes.bar(left, height, 0.92 * width, bottom, align="edge", color=color, alpha=alpha * strength)
        axes.vlines(left + 0.46 * width, 100 * interval[0], 100 * interval[1], color=INK, linewidth=0.8, alpha=0.55)
    axes.plot([0, 100], [0, 100], color=SOFT, linestyle=(0, (3, 3)), linewidth=1)
    axes.set(xlim=(0, 100), ylim=(0, 100), xticks=(0, 50, 100), yticks=(0, 50, 100), aspect="equal")
    axes.set_xlabel("Confidence, %")
    axes.set_ylabel("Accuracy, %")
    axes.set_title(title, loc="left", fontsize=10.5)
    strip_frame(axes)


def strip_frame(axes: Axes) -> None:
    """No frame, no tick marks."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0)
