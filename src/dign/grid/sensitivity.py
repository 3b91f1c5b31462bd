"""How results depend on settings: a grid's numeric lists as points, and the tables of them."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dign.core.errors import UserError
from dign.core.files import replace_file, write_json
from dign.evaluation.result_parts import Summary
from dign.grid.plan import Plan, PlannedRun
from dign.grid.state import Stage, read_state
from dign.grid.storage import Store, open_store


@dataclass(frozen=True)
class Measure:
    """A number out of the summary of results."""

    key: str
    label: str
    higher_is_better: bool
    read: Callable[[Summary], float | None]


def _noise_error(summary: Summary) -> float | None:
    return summary.calibration.noise.ece if summary.calibration.noise else None


def _partial_mean(summary: Summary) -> float | None:
    return summary.mca if summary.goes_beyond_noise and not summary.complete else None


MEASURES = (
    Measure("mca_n", "mCA-N (%)", True, lambda summary: summary.mca_n if summary.noise_complete else None),
    Measure("noise", "noise accuracy (%)", True, lambda summary: None if summary.noise_complete else summary.mca_n),
    Measure("clean_accuracy", "clean accuracy (%)", True, lambda summary: summary.clean_accuracy),
    Measure("mca", "mCA (%)", True, lambda summary: summary.mca if summary.complete else None),
    Measure("corruptions", "corruption accuracy (%)", True, _partial_mean),
    Measure("ece_n", "ECE-N (%)", False, _noise_error),
)
"""The first that was measured decides which settings are called best."""


@dataclass(frozen=True)
class Point:
    """One combination of settings: its values in the order of the axes, and each measure by seed."""

    values: tuple[float, ...]
    by_seed: dict[str, dict[int, float]]

    def mean(self, key: str) -> float:
        values = self.by_seed.get(key, {}).values()
        return math.fsum(values) / len(values) if values else math.nan

    def std(self, key: str) -> float:
        """Population standard deviation over seeds, as the paper gives it."""
        values, mean = self.by_seed.get(key, {}).values(), self.mean(key)
        return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values)) if values else math.nan


@dataclass(frozen=True)
class Sensitivity:
    """The points of one data set, model and method; `reference` are the published values where they are among them."""

    title: str
    axes: dict[str, tuple[float, ...]]
    points: tuple[Point, ...]
    reference: dict[str, float]
    missing: int = 0

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(measure for measure in MEASURES if any(point.by_seed.get(measure.key) for point in self.points))

    @property
    def best(self) -> Point:
        measure = self.measures[0]
        known = [point for point in self.points if not math.isnan(point.mean(measure.key))]
        sign = 1 if measure.higher_is_better else -1
        return max(known, key=lambda point: sign * point.mean(measure.key))

    def at(self, **values: float) -> Point | None:
        """The point with these values (by position in the axes' names), the reference elsewhere."""
        wanted = tuple({**self.reference, **values}[name] for name in self.axes)
        return next((point for point in self.points if point.values == wanted), None)


def studies_of(plan: Plan, out: Path | str) -> list[Sensitivity]:
    """The finished runs of a grid, one study for each data set, model, method and setting that is not a number."""
    groups: dict[str, list[PlannedRun]] = {}
    for run in plan.runs:
        if numeric_axes(run):
            groups.setdefault(_title(run), []).append(run)
    store = open_store(out)
    studies = []
    for title, runs in groups.items():
        done = [(run, summary) for run in runs if (summary := _summary(store, run)) is not None]
        if done:
            studies.append(make_sensitivity(title, done, missing=len(runs) - len(done)))
    return studies


def _summary(store: Store, run: PlannedRun) -> Summary | None:
    """A run's summary; None where it is not done, or where its folder holds some other run."""
    try:
        state = read_state(store, run)
    except UserError:
        return None
    return state.summary if state.stage is Stage.DONE else None


def numeric_axes(run: PlannedRun) -> dict[str, float]:
    return {
        key: value
        for key, value in run.axes.items()
        if key not in ("seed", "validation_seed") and isinstance(value, int | float) and not isinstance(value, bool)
    }


def _title(run: PlannedRun) -> str:
    numbers = numeric_axes(run)
    others = [f"{key} {value}" for key, value in run.axes.items() if key != "seed" and key not in numbers]
    return ", ".join([run.config.data, run.config.model, run.config.method, *others])


def make_sensitivity(title: str, done: Sequence[tuple[PlannedRun, Summary]], missing: int = 0) -> Sensitivity:
    """Gather runs and their summaries into points, means over seeds."""
    names = list(numeric_axes(done[0][0]))
    points: dict[tuple[float, ...], dict[str, dict[int, float]]] = {}
    for run, summary in done:
        by_seed = points.setdefault(tuple(run.axes[name] for name in names), {})
        for measure in MEASURES:
            value = measure.read(summary)
            if value is not None:
                by_seed.setdefault(measure.key, {})[run.config.seed] = value
    gathered = tuple(Point(values, by_seed) for values, by_seed in sorted(points.items()))
    axes = {name: tuple(sorted({point.values[i] for point in gathered})) for i, name in enumerate(names)}
    study = Sensitivity(title, axes, gathered, {}, missing)
    return Sensitivity(title, axes, gathered, _reference(study, done[0][0]), missing)


def _reference(study: Sensitivity, run: PlannedRun) -> dict[str, float]:
    """Where the other settings are held while one changes: the published value, or else that of the best point."""
    from dign.methods.factory import make_method, settings_of

    published = settings_of(make_method(run.config.method, data=run.config.data))
    reference = dict(zip(study.axes, study.best.values, strict=True))
    for name, values in study.axes.items():
        method, _, key = name.rpartition(".")
        usual = published.get(method, {}).get(key)
        if usual in values:
            reference[name] = usual
    return reference


def write_tables(study: Sensitivity, folder: Path) -> list[Path]:
    measures = study.measures
    rows = [
        {
            **dict(zip(study.axes, point.values, strict=True)),
            **{f"{m.key} {what}": _rounded(number(m.key)) for m in measures for what, number in _numbers(point)},
            "seeds": max(map(len, point.by_seed.values())),
        }
        for point in study.points
    ]
    with replace_file(folder / "sensitivity.csv") as partial, open(partial, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=rows[0])
        writer.writeheader()
        writer.writerows(rows)
    value = {
        "title": study.title,
        "axes": study.axes,
        "reference": study.reference,
        "best": {"by": measures[0].key, **dict(zip(study.axes, study.best.values, strict=True))},
        "missing_runs": study.missing,
        "points": [
            {"values": dict(zip(study.axes, point.values, strict=True)), "by_seed": point.by_seed}
            for point in study.points
        ],
    }
    write_json(folder / "sensitivity.json", value)
    return [folder / "sensitivity.csv", folder / "sensitivity.json"]


def _numbers(point: Point) -> tuple[tuple[str, Callable[[str], float]], ...]:
    return (("mean", point.mean), ("std", point.std))


def _rounded(value: float) -> float | str:
    return "" if math.isnan(value) else round(value, 4)
