"""The outcome of a sensitivity study: tables, a heat map for each pair of settings, and curves for each setting."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dign.core.errors import UserError
from dign.core.files import replace_file
from dign.grid.plan import Plan, slug
from dign.grid.sensitivity import Measure, Point, Sensitivity, studies_of, write_tables
from dign.grid.storage import open_store

FOLDER = "sensitivity"

FORMATS = ("png", "svg")
COLORS = ("#00539c", "#c2410c", "#00805a", "#7a1f4b", "#b97b00", "#007f8f", "#5b3fa8", "#6b6f76")
MARKERS = "os^DvXP*"
SYMBOLS = {"dign.sigma_max": r"$\sigma_{max}$", "dign.weight": r"$\lambda$", "dign.samples": "$n$"}
"""As the paper writes DiGN's settings."""


def draw_sensitivity(plan: Plan, out: Path | str, *, must: bool = True) -> list[str]:
    """Write tables and figures of every study in the grid into `sensitivity/` under `out`; returns their places.

    Where the grid has no numeric lists but the seed, or none of its runs is done: nothing, or an error if `must`.
    """
    studies = studies_of(plan, out)
    if not studies:
        if must:
            raise UserError(
                "There is no sensitivity study to draw: it needs finished runs and a list of numbers, as in "
                "[settings.dign] weight = [0.1, 0.2]."
            )
        return []
    store, places = open_store(out), []
    with store.open_folder(FOLDER, every=3600) as folder:
        for study in studies:
            target = folder / slug(study.title)
            written = [*write_tables(study, target), *draw_figures(study, target)]
            places += [f"{store.location}/{FOLDER}/{path.relative_to(folder).as_posix()}" for path in written]
    return places


def draw_figures(study: Sensitivity, folder: Path) -> list[Path]:
    """Write `curves` and one `heat-A-B` per pair of settings that both vary, as PNG and SVG."""
    written = _save(curves(study), folder, "curves")
    varying = [name for name, values in study.axes.items() if len(values) > 1]
    for first, second in combinations(varying, 2):
        short = [name.rpartition(".")[2] for name in (first, second)]
        written += _save(heat_maps(study, first, second), folder, f"heat-{short[0]}-{short[1]}")
    return written


def symbol(name: str) -> str:
    return SYMBOLS.get(name, name.rpartition(".")[2])


def curves(study: Sensitivity) -> Figure:
    """A row per measure, a column per setting: the others at their reference, a line for each value of the next."""
    measures, names = study.measures, list(study.axes)
    size = (3.6 * len(names) + 0.6, 2.5 * len(measures) + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(measures), len(names), squeeze=False, sharey="row", sharex="col")
    for column, name in enumerate(names):
        other = names[(column + 1) % len(names)] if len(names) > 1 else None
        for row, measure in enumerate(measures):
            _curve_panel(panels[row, column], study, measure, name, other)
        panels[-1, column].set_xlabel(symbol(name))
        if other:
            panels[0, column].legend(title=symbol(other), fontsize=7, title_fontsize=8, frameon=False)
    for row, measure in enumerate(measures):
        panels[row, 0].set_ylabel(measure.label)
    held = ", ".join(f"{symbol(name)} = {value:g}" for name, value in study.reference.items())
    figure.suptitle(f"{study.title}\nwhat is not varied: {held}; bars: standard deviation over seeds", fontsize=9)
    return figure


def _curve_panel(axes: Axes, study: Sensitivity, measure: Measure, name: str, other: str | None) -> None:
    values = study.axes[name]
    for number, level in enumerate(study.axes[other] if other else (None,)):
        fixed = {other: level} if other else {}
        points = [(value, study.at(**fixed, **{name: value})) for value in values]
        known = [(value, point) for value, point in points if point and not math.isnan(point.mean(measure.key))]
        if known:
            usual = level is None or level == study.reference[other]
            axes.errorbar(
                [value for value, _ in known],
                [point.mean(measure.key) for _, point in known],
                yerr=[point.std(measure.key) for _, point in known],
                color=COLORS[number % len(COLORS)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                linewidth=2 if usual else 1,
                capsize=2,
                label=None if level is None else f"{level:g}",
            )
    if min(values) > 0 and max(values) / min(values) >= 20:
        axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values], fontsize=8)
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2, linewidth=0.6)


def heat_maps(study: Sensitivity, first: str, second: str) -> Figure:
    """A row per measure; a column for each value of a third setting, where there is one."""
    third = next((name for name in study.axes if name not in (first, second) and len(study.axes[name]) > 1), None)
    levels = study.axes[third] if third else (None,)
    width, height = len(study.axes[second]), len(study.axes[first])
    size = (len(levels) * (0.75 * width + 1.1) + 0.8, len(study.measures) * (0.45 * height + 1.0) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(study.measures), len(levels), squeeze=False)
    for row, measure in enumerate(study.measures):
        cells = [_cells(study, measure, first, second, {third: level} if third else {}) for level in levels]
        known = [value for table in cells for line in table for value in line if not math.isnan(value)]
        for column, level in enumerate(levels):
            axes = panels[row, column]
            _heat_panel(axes, study, measure, cells[column], (min(known), max(known)), first, second)
            if third:
                axes.set_title(f"{measure.label}, {symbol(third)} = {level:g}", fontsize=9)
            else:
                axes.set_title(measure.label, fontsize=9)
    figure.suptitle(f"{study.title}: mean over seeds", fontsize=9)
    return figure


def _cells(study: Sensitivity, measure: Measure, first: str, second: str, fixed: dict[str, float]) -> list[list[float]]:
    def cell(point: Point | None) -> float:
        return point.mean(measure.key) if point else math.nan

    return [
        [cell(study.at(**fixed, **{first: row, second: column})) for column in study.axes[second]]
        for row in study.axes[first]
    ]


def _heat_panel(
    axes: Axes,
    study: Sensitivity,
    measure: Measure,
    cells: list[list[float]],
    limits: tuple[float, float],
    first: str,
    second: str,
) -> None:
    """Better is lighter, in every map; the number stands in its cell."""
    colors = "viridis" if measure.higher_is_better else "viridis_r"
    axes.imshow(cells, cmap=colors, vmin=limits[0], vmax=limits[1], aspect="auto", origin="lower")
    spread = limits[1] - limits[0]
    for y, line in enumerate(cells):
        for x, value in enumerate(line):
            if not math.isnan(value):
                goodness = (value - limits[0]) / spread if spread else 1.0
                light = (goodness if measure.higher_is_better else 1 - goodness) > 0.6
                axes.text(
                    x, y, f"{value:.1f}", ha="center", va="center", fontsize=8, color="black" if light else "white"
                )
    axes.set_xticks(range(len(study.axes[second])), [f"{value:g}" for value in study.axes[second]], fontsize=8)
    axes.set_yticks(range(len(study.axes[first])), [f"{value:g}" for value in study.axes[first]], fontsize=8)
    axes.set_xlabel(symbol(second))
    axes.set_ylabel(symbol(first))


def _save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Without dates, so that the same numbers give the same files."""
    paths = []
    for kind in FORMATS:
        path = folder / f"{name}.{kind}"
        with replace_file(path) as partial:
            figure.savefig(partial, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else {})
        paths.append(path)
    return paths
