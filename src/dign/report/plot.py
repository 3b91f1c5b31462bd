"""Figures for a paper, from evaluated runs: each function returns a matplotlib `Figure`, which the caller saves.

>>> import torch, dign
>>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 10))
>>> data = torch.rand(20, 3, 8, 8), torch.arange(20) % 10
>>> results = dign.evaluate(model, data, dign.Conditions(corruptions=["shot_noise"], severities=[1, 3]))
>>> figure = dign.plot.reliability({"mine": results}, under="noise")
>>> figure.savefig("reliability.pdf")  # doctest: +SKIP
>>> figure = dign.plot.accuracy_by_severity(["runs/standard", "runs/dign"])  # doctest: +SKIP
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dign.core.errors import UserError
from dign.core.text import escape_mathtext
from dign.evaluation.figures import RULE, draw_reliability, strip_frame
from dign.evaluation.results import Results
from dign.metrics import Calibration
from dign.metrics import risk_coverage as exact_curve
from dign.metrics.aggregation import MCA_N_CORRUPTIONS
from dign.report.analysis.quantities import corruption_title
from dign.report.analysis.study import METHOD_ORDER
from dign.report.analysis.tables import number
from dign.report.figures import draw_legend, draw_line, figure_style, finish_severity_axes
from dign.report.html.labels import shorten
from dign.report.html.landscape_section import PANELS, read_curve
from dign.report.html.unsure_section import POINTS, gather_images
from dign.report.load import Run, load_run
from dign.report.palette import color_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_IN_A_ROW = 4
WIDEST_TITLE = 230.0
"""Of a diagram, in units of `labels.text_width` for a size of 12."""
OneRun = Run | Results | Path | str
Runs = OneRun | Sequence[OneRun] | Mapping[str, OneRun]
"""Results or a run's folder, several of them, or several with the names that the figure gives them."""


def reliability(runs: Runs, under: str = "clean", severity: int | None = None) -> Figure:
    """Draw accuracy against confidence with 95 % intervals, one diagram per run.

    Args:
        runs: `Results` or the folder of an evaluated run, a sequence of these, or a mapping from names to these.
        under: "clean", "noise" (the noises of mCA-N), "all" (all corruptions of mCA), or the name of a corruption.
        severity: Takes only this severity; all of them by default.

    Returns:
        A figure with a diagram per run; its title names the expected calibration error.

    Raises:
        UserError: If a run was not evaluated under this condition.
    """
    from matplotlib.figure import Figure

    named = _named(runs)
    with figure_style():
        rows, columns = math.ceil(len(named) / MOST_IN_A_ROW), min(len(named), MOST_IN_A_ROW)
        size = (0.4 + 2.9 * columns, 3.4 * rows)
        figure = Figure(figsize=size, dpi=160, layout="constrained", facecolor="white")
        axes = list(figure.subplots(rows, columns, squeeze=False).flat)
        for place, (name, run), slot in zip(axes, named.items(), _slots(named), strict=False):
            counts = _pooled(run, under, severity)
            short = escape_mathtext(shorten(name, WIDEST_TITLE))
            title = f"{short}\nECE {number(counts.compute().ece)}, {_condition(under, severity)}"
            draw_reliability(place, counts, color_of(slot), title, run.results.evaluation.images)
        for place in axes[len(named) :]:
            place.remove()
    return figure


def accuracy_by_severity(runs: Runs, under: str = "noise") -> Figure:
    """Draw accuracy against severity, one line per run, from clean images on.

    Args:
        runs: `Results` or the folder of an evaluated run, a sequence of these, or a mapping from names to these.
        under: "noise" (the noises of mCA-N), "all" (all corruptions of mCA), or the name of a corruption.

    Returns:
        A figure with one pair of axes.

    Raises:
        UserError: If a run was not evaluated under this condition.
    """
    from matplotlib.figure import Figure

    named = _named(runs)
    severities: set[int] = set()
    with figure_style():
        figure = Figure(figsize=(_width(named), 3.6), dpi=160, layout="constrained", facecolor="white")
        axes = figure.subplots()
        for (name, run), slot in zip(named.items(), _slots(named), strict=True):
            accuracies = _accuracies(run, under)
            severities |= set(accuracies)
            points = [(0.0, run.results.clean.accuracy), *sorted(accuracies.items())]
            draw_line(axes, points, slot, escape_mathtext(name))
        finish_severity_axes(axes, sorted(severities))
        axes.set_title(f"Accuracy, {_condition(under, None)}", loc="left", fontweight="bold", fontsize=11)
    return figure


def risk_coverage(runs: Runs, under: str = "noise", severity: int | None = None) -> Figure:
    """Draw the error of the predictions that are kept against the share that is kept, the most confident ones first.

    Results that keep what each image got give the exact curve. Others, as those of older versions, hold counts per bin
    of confidence: then the curve has a mark where a bin ends, is exact there, and straight in between.

    Args:
        runs: `Results` or the folder of an evaluated run, a sequence of these, or a mapping from names to these.
        under: "clean", "noise" (the noises of mCA-N), "all" (all corruptions of mCA), or the name of a corruption.
        severity: Takes only this severity; all of them by default.

    Returns:
        A figure with one pair of axes.

    Raises:
        UserError: If a run was not evaluated under this condition.
    """
    from matplotlib.figure import Figure

    named = _named(runs)
    with figure_style():
        figure = Figure(figsize=(_width(named), 3.6), dpi=160, layout="constrained", facecolor="white")
        axes = figure.subplots()
        for (name, run), slot in zip(named.items(), _slots(named), strict=True):
            exact = _exact_risk_coverage(run, under, severity)
            curve = exact or risk_coverage_curve(_pooled(run, under, severity))
            draw_line(axes, curve, slot, escape_mathtext(name), markers=not exact)
        axes.set(xlim=(0, 102), xlabel="Coverage: predictions kept, %", ylabel="Risk: errors among them, %")
        axes.set_ylim(0, max(5.0, axes.get_ylim()[1]))
        axes.set_title(f"Risk and coverage, {_condition(under, severity)}", loc="left", fontweight="bold", fontsize=11)
        axes.grid(axis="y", color=RULE, linewidth=0.7)
        draw_legend(axes)
        strip_frame(axes)
    return figure


def _exact_risk_coverage(run: Run, under: str, severity: int | None) -> list[tuple[float, float]]:
    """(coverage, risk) in percent from every image; nothing where the results do not keep the images."""
    names = ["clean"] if under == "clean" else _corruptions(run, under)

    def keep(pair: tuple[str, int]) -> bool:
        return pair[0] in names and (under == "clean" or severity in (None, pair[1]))

    found = gather_images(run, keep)
    if found is None:
        return []
    confidence, correct = (torch.from_numpy(column) for column in found)
    coverage, risk = exact_curve(confidence, correct, POINTS)
    return [(100 * x, 100 * y) for x, y in zip(coverage, risk, strict=True)]


def risk_coverage_curve(calibration: Calibration) -> list[tuple[float, float]]:
    """(coverage, risk) in percent where the most confident bins, one more each time, are kept."""
    bins = calibration.reliability()
    total = sum(bins["count"])
    kept = wrong = 0.0
    curve = []
    for count, accuracy in zip(reversed(bins["count"]), reversed(bins["accuracy"]), strict=True):
        if count == 0:
            continue
        kept += count
        wrong += count * (1 - accuracy)
        curve.append((100 * kept / total, 100 * wrong / kept))
    return curve


def landscape(runs: Runs) -> Figure:
    """Draw the loss landscape that `dign landscape` measured: the four panels of the paper's Figure 2.

    Args:
        runs: The folder of a run with a measured landscape, a sequence of these, or a mapping from names to these.

    Returns:
        A figure with four pairs of axes.

    Raises:
        UserError: If a run has no landscape.
    """
    from matplotlib.figure import Figure

    named = _named(runs)
    with figure_style():
        figure = Figure(figsize=(9.6, 6.4), dpi=160, layout="constrained", facecolor="white")
        for axes, (key, title) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
            for (name, run), slot in zip(named.items(), _slots(named), strict=True):
                curve = read_curve(run, key)
                if curve is None:
                    raise UserError(f"{escape_mathtext(name)} has no loss landscape: measure it with `dign landscape`")
                draw_line(axes, list(zip(curve.radii, curve.means, strict=True)), slot, escape_mathtext(name))
            axes.set(xlabel="Radius ε", ylim=(0, 100) if key == "accuracy" else (0, None))
            axes.set_title(title, loc="left", fontsize=10.5)
            axes.grid(axis="y", color=RULE, linewidth=0.7)
            strip_frame(axes)
        draw_legend(figure.axes[1])
    return figure


def _width(named: Mapping[str, Run]) -> float:
    """Inches for the axes and a legend beside them."""
    return max(5.6, 4.4 + 0.085 * max(map(len, named)))


def _named(runs: Runs) -> dict[str, Run]:
    """Runs by the names that the figure gives them: the methods', or the folders' where methods are repeated."""
    if isinstance(runs, Mapping):
        return {name: _loaded(run) for name, run in runs.items()}
    several: Sequence[OneRun] = runs if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    loaded = [_loaded(run) for run in several]
    if not loaded:
        raise UserError("runs is empty: expected at least one evaluated run")
    for names in ([run.title for run in loaded], [run.name for run in loaded], [str(run.folder) for run in loaded]):
        if len(set(names)) == len(names):
            break
    else:
        raise UserError(f"several runs are called '{names[0]}': name them, as in {{'a': first, 'b': second}}")
    return dict(zip(names, loaded, strict=True))


def _loaded(run: OneRun) -> Run:
    if isinstance(run, Run):
        return run
    if isinstance(run, Results):
        return Run(Path(run.run.name), run)
    if isinstance(run, Path | str):
        return load_run(Path(run))
    raise UserError(f"runs has a {type(run).__name__}: expected Results, or the folder of an evaluated run.")


def _slots(named: Mapping[str, Run]) -> list[int]:
    """The color that a method has in reports, where only one run is of it."""
    titles = [run.title for run in named.values()]
    spare = iter(range(len(METHOD_ORDER), len(METHOD_ORDER) + len(titles)))
    return [
        METHOD_ORDER.index(title) if title in METHOD_ORDER and titles.count(title) == 1 else next(spare)
        for title in titles
    ]


def _corruptions(run: Run, under: str) -> list[str]:
    """The corruptions that a condition's name stands for, as far as the run was evaluated under them."""
    wanted = {"noise": MCA_N_CORRUPTIONS, "all": run.results.counted}.get(under, (under,))
    found = [name for name in wanted if name in run.results.corruptions]
    if not found:
        known = ", ".join(["clean", "noise", "all", *run.results.corruptions])
        raise UserError(f"{run.name} was not evaluated under '{under}': expected one of {known}")
    return found


def _accuracies(run: Run, under: str) -> dict[int, float]:
    """The mean accuracy over the corruptions at each severity."""
    columns: dict[int, list[float]] = {}
    for name in _corruptions(run, under):
        for severity, accuracy in run.results.corruptions[name].accuracies.items():
            columns.setdefault(severity, []).append(accuracy)
    return {severity: sum(values) / len(values) for severity, values in columns.items()}


def _pooled(run: Run, under: str, severity: int | None) -> Calibration:
    """The counts of all predictions under a condition together."""
    if under == "clean":
        return run.results.clean.calibration
    total = Calibration(run.results.clean.calibration.bins)
    parts = [run.results.corruptions[name].severities for name in _corruptions(run, under)]
    chosen = [counts for part in parts for level, counts in part.items() if severity in (None, level)]
    if not chosen:
        levels = ", ".join(map(str, sorted({level for part in parts for level in part})))
        raise UserError(f"invalid severity {severity}: {run.name} was evaluated at {levels}")
    for counts in chosen:
        total.merge(counts.calibration)
    return total


def _condition(under: str, severity: int | None) -> str:
    names = {"clean": "clean images", "noise": "under noise", "all": "under all corruptions"}
    text = names.get(under, f"under {corruption_title(under).lower()}")
    return text if severity is None or under == "clean" else f"{text}, severity {severity}"
