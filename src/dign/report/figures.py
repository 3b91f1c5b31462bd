"""Drawing with matplotlib: the parts that figures have in common, and the picture for a README."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dign.core.errors import UserError
from dign.core.files import replace_file
from dign.core.text import escape_mathtext
from dign.evaluation.figures import RULE, SOFT, draw_reliability, strip_frame
from dign.report.analysis.confidence_quantities import CALIBRATION
from dign.report.analysis.quantities import CLEAN_ACCURACY, CORRUPTION_MEAN, MCA, NOISE_MEANS, severity_accuracy
from dign.report.analysis.story import ranking, rival_of
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import number
from dign.report.palette import THEME, color_of, dash_of, marker_of
from dign.report.scales import accuracy_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "X", "down": "v"}
INK = THEME["ink"][0]


def figure_style() -> AbstractContextManager[None]:
    """The fonts and colors of the project's figures, for as long as the context lasts."""
    from matplotlib import rc_context

    return rc_context({
        "font.size": 10, "axes.edgecolor": SOFT, "axes.labelcolor": SOFT, "text.color": INK,
        "xtick.color": SOFT, "ytick.color": SOFT, "font.family": "sans-serif",
    })  # fmt: skip


MOST_LINES = 12
"""Methods up to which each has a line; more of them have a row each."""


def draw_figure(study: Study, path: Path) -> Path:
    """Write a PNG: accuracy against severity of all methods on the best one's model, and two reliability diagrams.

    Where there are very many methods, they are ranked instead, with a row each.
    """
    from matplotlib.figure import Figure

    if not study.noises:
        raise UserError("the figure shows noise, and these runs were not evaluated under noise: `dign evaluate` them")
    ranked = ranking(study)
    best = ranked[0]
    rival = rival_of(best, ranked)
    shown = [group for group in (rival, best) if group is not None]
    groups = [group for group in ranked if group.model == best.model]
    many = len(groups) > MOST_LINES
    height = 1.1 + 0.21 * len(groups) if many else 3.7
    with figure_style():
        figure = Figure(figsize=(7.2 + 2.9 * len(shown), height), dpi=160, layout="constrained", facecolor="white")
        axes = figure.subplots(1, 1 + len(shown), width_ratios=[2.1, *([1] * len(shown))], squeeze=False)[0]
        if many:
            _draw_ranked(axes[0], groups)
        else:
            _draw_noise(axes[0], study, study.of_model(best.model))
        for place, group in zip(axes[1:], shown, strict=True):
            ece, counts = group.mean(CALIBRATION["noise", "ece"]), group.pooled(study.noises)
            assert ece is not None and counts is not None  # it is ranked by its accuracy under noise
            title = f"{escape_mathtext(group.label)}\nECE {number(ece)} under noise"
            images = group.runs[0].results.evaluation.images
            draw_reliability(place, counts, color_of(group.slot), title, images)
        with replace_file(path) as partial:
            figure.savefig(partial, format="png", metadata={"Software": "dign"})
    return path


def _draw_noise(axes: Axes, study: Study, groups: tuple[Group, ...]) -> None:
    places = [0, *study.severities]
    levels = [severity_accuracy(place, study.noises, "noise") for place in places]
    for group in groups:
        means = map(group.mean, levels)
        points = [(place, mean) for place, mean in zip(places, means, strict=True) if mean is not None]
        draw_line(axes, points, group.slot, escape_mathtext(group.label), dash_of(group))
    finish_severity_axes(axes, study.severities)
    axes.set_title("Accuracy as noise grows", loc="left", fontweight="bold", fontsize=11)


def _draw_ranked(axes: Axes, ranked: Sequence[Group]) -> None:
    """A row for each method, the best under noise on top, with its accuracies as dots."""
    columns = {
        "under noise": (NOISE_MEANS, "o", INK),
        "under all corruptions": ((MCA, CORRUPTION_MEAN), "D", SOFT),
        "clean": ((CLEAN_ACCURACY,), "|", INK),
    }
    for label, (quantities, marker, color) in columns.items():
        means = [next((mean for mean in map(group.mean, quantities) if mean is not None), None) for group in ranked]
        points = [(mean, row) for row, mean in enumerate(means) if mean is not None]
        if points:
            filled = color if marker == "o" else "white"
            axes.plot(*zip(*points, strict=True), linestyle="", marker=marker, markersize=5.5, color=color,
                      markerfacecolor=filled, label=label)  # fmt: skip
    axes.set_yticks(range(len(ranked)), [escape_mathtext(group.label) for group in ranked], color=INK)
    axes.set_ylim(len(ranked) - 0.4, -0.6)
    axes.set_xlabel("Accuracy, %")
    axes.grid(axis="both", color=RULE, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=3, columnspacing=1, handletextpad=0.2)
    strip_frame(axes)


def draw_line(
    axes: Axes, points: Sequence[tuple[float, float]], slot: int, label: str, dash: str = "", markers: bool = True
) -> None:
    """A line with the color and the marker of a slot; a marker on the edge of the axes is whole."""
    pattern = tuple(float(part) / 2 for part in dash.split())
    axes.plot(*zip(*points, strict=True), color=color_of(slot), marker=MARKERS[marker_of(slot)] if markers else "",
              markersize=5, linewidth=2, linestyle=(0, pattern) if pattern else "-", label=label,
              clip_on=False)  # fmt: skip


def finish_severity_axes(axes: Axes, severities: Sequence[int]) -> None:
    """Ticks and labels of accuracy against severity, a range that does not exaggerate, and the legend."""
    axes.set_xticks([0, *severities], ["clean", *map(str, severities)])
    axes.set_xlabel("Severity")
    axes.set_ylabel("Accuracy, %")
    axes.set_ylim(*accuracy_range([height for line in axes.lines for height in _heights(line)]))
    axes.grid(axis="y", color=RULE, linewidth=0.7)
    draw_legend(axes)
    strip_frame(axes)


def draw_legend(axes: Axes) -> None:
    """Beside the lines, where it hides none, in the order in which they end there."""
    lines = sorted(axes.lines, key=lambda line: -_heights(line)[-1])
    axes.legend(handles=lines, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def _heights(line: Line2D) -> list[float]:
    return [float(height) for height in np.asarray(line.get_ydata())]
