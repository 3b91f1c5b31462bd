"""The loss landscape on the page: the four panels of the paper's Figure 2, from what `dign landscape` left in runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dign.report.analysis.study import Group, Study
from dign.report.html.charts import Axes, Series, Tip, line_chart, number_ticks
from dign.report.html.result_sections import ModelPart, per_model
from dign.report.load import Run
from dign.report.palette import dash_of

PANELS = {
    "loss_difference": "Change of the loss, |L(x+δ) − L(x)|",
    "accuracy": "Accuracy, %",
    "first_order": "First order, ε‖∇L‖",
    "second_order": "Second order, ε²/2 · E‖Hz‖²",
}
Z_95 = 1.96
"""Half width of a 95 % interval in standard errors, as `dign landscape` draws it."""


@dataclass(frozen=True)
class Curve:
    """A panel of one run: means over `images` at `radii`, with their standard errors; None where the file has none."""

    radii: tuple[float, ...]
    means: tuple[float, ...]
    errors: tuple[float, ...] | None
    images: int | None


def landscape_parts(study: Study) -> list[ModelPart]:
    """The panels, with what their lines and bands are means and spreads of."""

    def build(groups: Sequence[Group]) -> dict[str, Any] | None:
        panels = [(title, _panel(name, title, groups)) for name, title in PANELS.items()]
        drawn = [(title, chart) for title, chart in panels if chart is not None]
        return {"panels": drawn, "note": what_is_drawn(groups)} if drawn else None

    return per_model(study, build)


def read_curve(run: Run, name: str) -> Curve | None:
    """One panel of the landscape in a run folder; None where there is none, or it is malformed."""
    if run.landscape is None:
        return None
    try:
        radii, model = run.landscape["settings"]["radii"], run.landscape["models"][0]
        panel, images = model["panels"][name], model.get("images")
        curve = Curve(
            tuple(map(float, radii)),
            tuple(map(float, panel["mean"])),
            tuple(map(float, panel["standard_error"])) if "standard_error" in panel else None,
            images if isinstance(images, int) else None,
        )
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        return None
    columns = [column for column in (curve.radii, curve.means, curve.errors) if column is not None]
    sound = all(len(column) == len(curve.radii) and all(map(math.isfinite, column)) for column in columns)
    return curve if sound and curve.radii else None


def group_curves(group: Group, name: str) -> list[Curve]:
    """Those of a group's runs that were measured at the same radii as its first."""
    found = [curve for run in group.runs if (curve := read_curve(run, name))]
    return [curve for curve in found if curve.radii == found[0].radii]


def group_series(group: Group, name: str) -> Series | None:
    """The mean over seeds with a band of one standard deviation; of one seed, its 95 % band over images."""
    curves = group_curves(group, name)
    if not curves:
        return None
    columns = list(zip(*(curve.means for curve in curves), strict=True))
    means = [math.fsum(column) / len(column) for column in columns]
    if len(curves) > 1:
        spread = [
            math.sqrt(math.fsum((value - mean) ** 2 for value in column) / len(column))
            for column, mean in zip(columns, means, strict=True)
        ]
    else:
        spread = [Z_95 * error for error in curves[0].errors or ()]
    points = list(zip(curves[0].radii, means, strict=True))
    return Series(group.label, group.slot, points, spread or None, dash_of(group))


def what_is_drawn(groups: Sequence[Group]) -> str:
    """How many seeds each line is a mean of, and what its band is; methods that are alike are named at once."""
    named: dict[str, list[str]] = {}
    for group in groups:
        curves = group_curves(group, next(iter(PANELS)))
        named.setdefault(_about(curves, len(group.runs)), []).append(group.label)
    return " ".join(f"{', '.join(labels)}: {about}." for about, labels in named.items())


def _about(curves: Sequence[Curve], runs: int) -> str:
    if not curves:
        return "no landscape was measured"
    alone = " (the others have no landscape, or one at other radii)" if runs > len(curves) else ""
    seeds = f"{len(curves)} of {runs} seeds{alone}" if runs > 1 else "one seed"
    if len(curves) > 1:
        return f"mean of {seeds}, band ± one standard deviation over seeds"
    if curves[0].errors is None:
        return f"{seeds}, no band"
    images = f" {curves[0].images}" if curves[0].images else ""
    return f"{seeds}, band 95 % confidence over its{images} images"


def _panel(name: str, title: str, groups: Sequence[Group]) -> Markup | None:
    series = [found for group in groups if (found := group_series(group, name))]
    if not series:
        return None
    xs = [x for one in series for x, _ in one.points]
    tops = [y + spread for one in series for (_, y), spread in zip(one.points, _spread(one), strict=True)]
    high = 100.0 if name == "accuracy" else max(tops) or 1.0
    axes = Axes(460, 280, (min(0.0, *xs), max(xs)), (0.0, high), (12, 12, 38, 52), number_ticks(0, max(xs), 6),
                number_ticks(0, high), "Radius ε")  # fmt: skip

    def tip(radius: float) -> Tip:
        at = [(one, dict(zip((x for x, _ in one.points), _values(one), strict=True)).get(radius)) for one in series]
        return [(None, f"{title}, ε = {radius:g}", ""), *((one.slot, one.label, text) for one, text in at if text)]

    return line_chart(title, axes, series, tip)


def _spread(series: Series) -> Sequence[float]:
    return series.spread or [0.0] * len(series.points)


def _values(series: Series) -> list[str]:
    shown = [f"{y:.3g}" for _, y in series.points]
    return [f"{y} ± {s:.2g}" if s else y for y, s in zip(shown, _spread(series), strict=True)]
