"""The picture for a README: accuracy as noise grows, and what confidence is worth under noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dign.core.errors import UserError
from dign.core.files import replace_file
from dign.core.text import escape_mathtext
from dign.report.analysis.quantities import CALIBRATION, severity_accuracy
from dign.report.analysis.story import ranking, rival_of
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import number
from dign.report.palette import color_of, dash_of, marker_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D", "cross": "X", "down": "v"}
_INK, _SOFT, _RULE = "#1b1d21", "#5b606a", "#dfdcd4"


def draw_figure(study: Study, path: Path) -> Path:
    """Write a PNG: accuracy against severity of all methods on the best one's model, and two reliability diagrams."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not study.noises:
        raise UserError("The picture is about noise, and these runs were not evaluated under it: `dign evaluate` them.")
    ranked = ranking(study)
    best = ranked[0]
    rival = rival_of(best, ranked)
    shown = [group for group in (rival, best) if group is not None]
    style = {"font.size": 10, "axes.edgecolor": _SOFT, "axes.labelcolor": _SOFT, "text.color": _INK,
             "xtick.color": _SOFT, "ytick.color": _SOFT, "font.family": "sans-serif"}  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(7.2 + 2.9 * len(shown), 3.7), dpi=160, layout="constrained", facecolor="white")
        axes = figure.subplots(1, 1 + len(shown), width_ratios=[2.1, *([1] * len(shown))], squeeze=False)[0]
        _accuracy_against_severity(axes[0], study, study.of_model(best.model))
        for place, group in zip(axes[1:], shown, strict=True):
            _reliability(place, group, study)
        with replace_file(path) as partial:
            figure.savefig(partial, format="png", metadata={"Software": "dign"})
    return path


def _accuracy_against_severity(axes: Axes, study: Study, groups: tuple[Group, ...]) -> None:
    places = [0, *study.severities]
    levels = [severity_accuracy(place, study.noises, "noise") for place in places]
    for group in groups:
        means = map(group.mean, levels)
        points = [(place, mean) for place, mean in zip(places, means, strict=True) if mean is not None]
        dash = tuple(float(part) / 2 for part in dash_of(group).split())
        axes.plot(*zip(*points, strict=True), color=color_of(group.slot), marker=_MARKERS[marker_of(group.slot)],
                  markersize=5, linewidth=2, linestyle=(0, dash) if dash else "-",
                  label=escape_mathtext(group.label))  # fmt: skip
    axes.set_xticks(places, ["clean", *map(str, study.severities)])
    axes.set_xlabel("Severity")
    axes.set_ylabel("Accuracy, %")
    axes.set_ylim(top=100)
    axes.grid(axis="y", color=_RULE, linewidth=0.7)
    axes.set_title("Accuracy as noise grows", loc="left", fontweight="bold", fontsize=11)
    # Beside the lines, where it hides none, in the order in which they end there.
    lines = sorted(axes.lines, key=lambda line: -line.get_ydata()[-1])
    axes.legend(handles=lines, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    _bare(axes)


def _reliability(axes: Axes, group: Group, study: Study) -> None:
    calibration = group.pooled(study.noises)
    bins = calibration.reliability()
    width = 100 / calibration.bins
    total = sum(bins["count"])
    for index, (count, confidence, accuracy) in enumerate(zip(*bins.values(), strict=True)):
        if count == 0:
            continue
        left, strength = index * width, 1.0 if count >= 0.005 * total else 0.3
        bar = {"width": 0.92 * width, "align": "edge", "color": color_of(group.slot)}
        overconfidence = 100 * max(confidence - accuracy, 0.0)
        axes.bar(left, 100 * accuracy, alpha=0.8 * strength, **bar)
        axes.bar(left, overconfidence, bottom=100 * accuracy, alpha=0.22 * strength, **bar)
    axes.plot([0, 100], [0, 100], color=_SOFT, linestyle=(0, (3, 3)), linewidth=1)
    axes.set(xlim=(0, 100), ylim=(0, 100), xticks=(0, 50, 100), yticks=(0, 50, 100), aspect="equal")
    axes.set_xlabel("Confidence, %")
    axes.set_ylabel("Accuracy, %")
    ece = group.mean(CALIBRATION["noise", "ece"])
    axes.set_title(f"{escape_mathtext(group.label)}\nECE {number(ece)} under noise", loc="left", fontsize=10.5)
    _bare(axes)


def _bare(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=0)
