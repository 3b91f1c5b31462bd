"""The figures: the four panels of the paper's Figure 2, and the checks of the theory, from their JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dign.core.files import replace_file
from dign.core.text import escape_mathtext

COLORS = {"Standard": "#6b6f76", "DiGN": "#00539c"}
"""The two methods that the paper's figure compares keep their color; others take the next of `MORE`."""
MORE = ("#c2410c", "#00805a", "#7a1f4b", "#b97b00", "#007f8f", "#5b3fa8")
LINE_STYLES = ("-", "--", ":", "-.")
FORMATS = ("png", "pdf", "svg")
Z_95 = 1.96

PANEL_LABELS = {
    "loss_difference": r"loss difference  $|L(x+\delta)-L(x)|$",
    "accuracy": "accuracy (%)",
    "first_order": r"first order  $\epsilon\,\|\nabla_x L\|$",
    "second_order": r"second order  $\frac{1}{2}\epsilon^2\,E\|Hz\|^2$",
}


def landscape_figure(result: dict[str, Any]) -> Figure:
    """Four panels against the radius, from `landscape.json`.

    A run by itself is a line with a 95 % band over images. Runs of one group (see `line_looks`) are thin lines with
    their mean in bold: their spread over seeds takes the place of the bands.
    """
    figure = Figure(figsize=(8.6, 6.4), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True)
    looks, groups = line_looks(result["models"]), group_names(result["models"])
    radii = result["settings"]["radii"]
    order = sorted(range(len(radii)), key=radii.__getitem__)
    x = [radii[i] for i in order]
    for axes, (name, label) in zip(panels.flat, PANEL_LABELS.items(), strict=True):
        curves = [[model["panels"][name][part] for model in result["models"]] for part in ("mean", "standard_error")]
        means, errors = ([[curve[i] for i in order] for curve in part] for part in curves)
        _panel(axes, x, means, errors, looks, groups)
        axes.set_ylabel(label)
        _quiet(axes)
        lowest = min(min(mean) for mean in means)
        axes.set_ylim(*((max(0, 10 * math.floor(lowest / 10 - 0.5)), 101) if name == "accuracy" else (0, None)))
    for axes in panels[1]:
        axes.set_xlabel(r"radius $\epsilon$ of the random perturbation ($\ell_2$)")
    _legend(figure, panels[0, 0])
    return figure


def _panel(
    axes: Axes,
    x: list[float],
    means: list[list[float]],
    errors: list[list[float]],
    looks: list[dict[str, Any]],
    groups: list[tuple[str, str]],
) -> None:
    for first, look in enumerate(looks):
        if look["label"] is None:
            continue
        members = [i for i, group in enumerate(groups) if group == groups[first]]
        if len(members) == 1:
            axes.plot(x, means[first], marker="o", markersize=3, **look)
            low, high = (
                [m + sign * Z_95 * e for m, e in zip(means[first], errors[first], strict=True)] for sign in (-1, 1)
            )
            axes.fill_between(x, low, high, color=look["color"], alpha=0.15, linewidth=0)
            continue
        for member in members:
            axes.plot(x, means[member], color=look["color"], linestyle=look["linestyle"], linewidth=0.7, alpha=0.5)
        columns = zip(*(means[member] for member in members), strict=True)
        mean = [sum(column) / len(members) for column in columns]
        axes.plot(x, mean, marker="o", markersize=3, **{**look, "linewidth": 2})


def theory_figure(result: dict[str, Any]) -> Figure:
    """Six panels, one per claim, one line per model, from the `theory` parts of `landscape.json`."""
    figure = Figure(figsize=(13, 7.4), layout="constrained")
    panels = figure.subplots(2, 3)
    models = result["models"]
    looks = line_looks(models)
    _expansion_panel(panels[0, 0], models, looks)
    _proposition_panel(panels[0, 1], models, looks)
    _theorem_1_panel(panels[0, 2], models, looks)
    _slack_panel(panels[1, 0], models, looks)
    _lemma_panel(panels[1, 1], models[0]["theory"]["lemma_1"], models[0]["theory"]["dimension"])
    _theorem_2_panel(panels[1, 2], models, looks)
    for axes in panels.flat:
        _quiet(axes)
    _legend(figure, panels[0, 0])
    return figure


def _expansion_panel(axes: Axes, models: list[dict[str, Any]], looks: list[dict[str, Any]]) -> None:
    for model, look in zip(models, looks, strict=True):
        part, diverse = model["theory"]["equation_8"], model["theory"]["equation_9"]
        axes.plot(part["sigma"], _drawable(part["median"]), marker="o", markersize=3, **look)
        low, high = _drawable(part["q10"]), _drawable(part["q90"])
        axes.fill_between(part["sigma"], low, high, color=look["color"], alpha=0.12, linewidth=0)
        axes.plot(diverse["sigma"], _drawable(diverse["median"]), color=look["color"], linewidth=1, linestyle="--")
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", ylabel="ratio: median image, 10-90 % band")
    axes.set_title(r"(8), (9):  $E\,D$ / ($\frac{\sigma^2}{2}$ or $\frac{\sigma_{\max}^2}{6}$) $\mathrm{Tr}\,G$")
    axes.set_xlabel(r"$\sigma$ (solid) or $\sigma_{\max}$ (dashed)")


def _proposition_panel(axes: Axes, models: list[dict[str, Any]], looks: list[dict[str, Any]]) -> None:
    for row, (model, look) in enumerate(zip(models, looks, strict=True)):
        part = model["theory"]["proposition_1"]
        axes.plot(
            _drawable([part["q10"], part["q90"]]), [row, row], color=look["color"], linewidth=3, solid_capstyle="round"
        )
        axes.plot(_drawable([part["median"]]), [row], marker="o", color=look["color"])
    axes.axvspan(1e-17, 1e-12, color="black", alpha=0.06, linewidth=0)
    axes.text(1e-17, 1.0, " rounding: H = G", transform=axes.get_xaxis_transform(), va="top", fontsize=8)
    axes.set(xscale="log", xlim=(1e-17, 1e2), title=r"Proposition 1:  $\|H-G\|_F\,/\,\|G\|_F$")
    axes.set_yticks(range(len(models)), [_name(model) for model in models], fontsize=7)
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.set_xlabel("median image, 10-90 % of images")


def _theorem_1_panel(axes: Axes, models: list[dict[str, Any]], looks: list[dict[str, Any]]) -> None:
    for model, look in zip(models, looks, strict=True):
        part = model["theory"]["theorem_1"]
        axes.plot(part["radius"], part["random_holds"], marker="o", markersize=3, **look)
        axes.plot(part["radius"], part["steepest_holds"], marker="^", markersize=4, alpha=0.6, color=look["color"])
    axes.set(xscale="log", ylim=(-3, 103), title="Theorem 1 without o(): where it holds", ylabel="% of images")
    axes.set_xlabel(r"$\|\delta\|$  (circles: random, triangles: along the gradient)", fontsize=9)


def _slack_panel(axes: Axes, models: list[dict[str, Any]], looks: list[dict[str, Any]]) -> None:
    for model, look in zip(models, looks, strict=True):
        part = model["theory"]["theorem_1"]
        for key, marker in (("random_slack", "o"), ("steepest_slack", "^")):
            axes.plot(part["radius"], _drawable(part[key]), marker=marker, markersize=3, color=look["color"])
    axes.axhline(1, color="black", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", title="Theorem 1 without o(): slack", ylabel="bound / change, median image")
    axes.set_xlabel(r"$\|\delta\|$  (circles: random, triangles: along the gradient)", fontsize=9)


def _lemma_panel(axes: Axes, part: dict[str, Any], dimension: int) -> None:
    styles: dict[str, dict[str, Any]] = {
        "bound": {"color": "#a00020", "label": "Lemma 1"},
        "chernoff": {"color": "#00805a", "label": "Chernoff"},
        "exact": {"color": "black", "linestyle": ":", "label": "exact"},
        "empirical": {"color": "black", "linewidth": 3, "alpha": 0.4, "label": "draws"},
    }
    for key, style in styles.items():
        axes.plot(part["norm"], _drawable(part[key]), **style)
    _mark_informative(axes, part["informative_from"], part["norm"][-1])
    axes.axvline(part["typical_norm"], color="black", linewidth=0.6)
    axes.set(title=rf"Lemma 1 at $d={dimension}$, $\sigma={part['sigma']}$", ylabel=r"$\log_{10}$ probability")
    axes.set(xscale="log", xlabel=r"$u$, tail of $\|\delta\|_2$ (vertical line: typical norm)")
    axes.set_yscale("symlog", linthresh=1)
    axes.legend(fontsize=8, frameon=False, loc="lower left")


def _theorem_2_panel(axes: Axes, models: list[dict[str, Any]], looks: list[dict[str, Any]]) -> None:
    styles: dict[str, dict[str, Any]] = {
        "median_bound": {"linewidth": 1.2},
        "bound": {"linewidth": 1.2, "linestyle": ":"},
        "chernoff": {"linewidth": 1, "linestyle": "--"},
        "empirical": {"linewidth": 3, "alpha": 0.5},
    }
    for model, look in zip(models, looks, strict=True):
        part = model["theory"]["theorem_2"]
        color = look["color"]
        for key, style in styles.items():
            axes.plot(part["t"], _drawable(part[key]), color=color, **style)
    parts = [model["theory"]["theorem_2"] for model in models]
    _mark_informative(axes, min(p["informative_from"]["median"] for p in parts), max(p["t"][-1] for p in parts))
    axes.set(title=rf"Theorem 2 at $\sigma={parts[0]['sigma']}$", ylabel=r"$\log_{10}$ probability", xscale="log")
    axes.set_xlabel(
        "$t$  (solid: the median image's bound; means over images:\n"
        "dotted: min(1, bound), dashed: sharper, thick: draws)",
        fontsize=8,
    )
    axes.set_yscale("symlog", linthresh=1)


def _mark_informative(axes: Axes, start: float, end: float) -> None:
    """Shade where a bound on a probability is below 1."""
    if 0 < start < end:
        axes.axvspan(start, end, color="#00805a", alpha=0.08, linewidth=0)
        axes.text(start, 0.97, " bound < 1", transform=axes.get_xaxis_transform(), va="top", fontsize=8)
    axes.axhline(0, color="black", linewidth=0.6)


def _drawable(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def group_names(models: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """The group of each model: runs of one method whose names differ in their -SEED alone."""
    return [(model["title"], re.sub(r"-(seed)?\d+$", "", model["name"])) for model in models]


def line_looks(models: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One color and one entry of the legend per group; where colors are used again, the line is dashed or dotted."""
    groups = group_names(models)
    colors: dict[tuple[str, str], tuple[str, str]] = {}
    looks: list[dict[str, Any]] = []
    more = iter([(color, style) for style in LINE_STYLES for color in MORE] * len(models))
    for group, model in zip(groups, models, strict=True):
        count, title = groups.count(group), group[0]
        label = _name(model) if count == 1 else escape_mathtext(f"{title} ({group[1]}, {count} runs)")
        looks.append({"label": label if group not in colors else None, "linewidth": 1.5 if count == 1 else 1})
        if group not in colors:
            own = (COLORS.get(title, ""), LINE_STYLES[0])
            colors[group] = own if title in COLORS and own not in colors.values() else next(more)
        looks[-1]["color"], looks[-1]["linestyle"] = colors[group]
    return looks


def _name(model: dict[str, Any]) -> str:
    return escape_mathtext(f"{model['title']} ({model['name']})")


def _quiet(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2, linewidth=0.6)


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    letters = 14 * figure.get_figwidth()  # that fit into a line
    columns = int(letters // (max(map(len, labels)) + 6))
    ncols = max(1, min(len(labels), 4, columns))
    figure.legend(handles, labels, loc="outside upper center", ncols=ncols, frameon=False, fontsize=9)


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write NAME.png, NAME.pdf and NAME.svg, without dates, so that the same numbers give the same files."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # the layout stands: finding it again for each format takes seconds
    paths = []
    for kind in FORMATS:
        path = folder / f"{name}.{kind}"
        metadata = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}[kind]
        with replace_file(path) as partial:
            figure.savefig(partial, format=kind, dpi=160, metadata=metadata)
        paths.append(path)
    return paths
