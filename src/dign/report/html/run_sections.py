"""The parts of the page that show the runs themselves: training curves, configurations."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from dign.core.text import clean_text
from dign.evaluation.json_values import is_number
from dign.report.analysis.quantities import CLEAN_ACCURACY, NOISE_MEANS, Quantity
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table, measured
from dign.report.html.charts import Axes, Series, Tip, line_chart, number_ticks
from dign.report.html.result_sections import ModelPart, per_model
from dign.report.load import Run, flatten
from dign.report.palette import dash_of
from dign.report.scales import accuracy_range

PLACE = re.compile(
    r"(?P<before>(--[\w.-]+=)?(folder:|hub:)?)(?P<path>([A-Za-z]:|~[^/\\]*)?[/\\](?![/\\]).*)", re.DOTALL
)
"""An absolute path, alone or after what may stand before one; not a URL."""
POINTS = 100
"""About how many points a training curve is thinned to."""


def training_parts(study: Study) -> list[ModelPart]:
    """Validation accuracy and training loss against epochs, of every run that left its metrics."""

    def build(groups: Sequence[Group]) -> list[tuple[str, Markup]] | None:
        charts = {
            "Validation accuracy": _curves("Validation accuracy", "Accuracy, %", groups, validation_curve),
            "Training loss": _curves("Training loss", "Loss", groups, loss_curve),
        }
        return [(title, chart) for title, chart in charts.items() if chart is not None] or None

    return per_model(study, build)


def validation_curve(run: Run) -> list[tuple[float, float]]:
    """(epochs done, accuracy in percent) of every validation."""
    validations = [record for record in run.metrics if isinstance(record.get("validation"), dict)]
    found: list[tuple[Any, Any]] = [
        (record.get("epoch"), record["validation"].get("accuracy")) for record in validations
    ]
    return [(float(epoch), float(accuracy)) for epoch, accuracy in found if is_number(epoch) and is_number(accuracy)]


def loss_curve(run: Run) -> list[tuple[float, float]]:
    """(epochs done, mean loss), thinned by averaging over neighboring steps."""
    steps = [record for record in run.metrics if is_number(record.get("loss")) and is_number(record.get("step"))]
    per_epoch = _steps_per_epoch(run)
    if not steps or per_epoch is None:
        return []
    size = math.ceil(len(steps) / POINTS)
    curve = []
    for start in range(0, len(steps), size):
        part = steps[start : start + size]
        place = sum(record["step"] for record in part) / len(part) / per_epoch
        curve.append((place, sum(record["loss"] for record in part) / len(part)))
    return curve


def _steps_per_epoch(run: Run) -> float | None:
    """A record's `epoch` counts finished epochs, so the quotient is exact where an epoch ends, as at a validation."""
    numbered = [r for r in run.metrics if is_number(r.get("step")) and is_number(r.get("epoch"))]
    counted = [record for record in numbered if record["step"] > 0 and record["epoch"] > 0]
    exact = [record for record in counted if "validation" in record] or counted
    return exact[-1]["step"] / exact[-1]["epoch"] if exact else None


def _curves(
    title: str, y_label: str, groups: Sequence[Group], curve: Callable[[Run], list[tuple[float, float]]]
) -> Markup | None:
    series = [
        Series(group.label, group.slot, points, dash=dash_of(group), markers=False)
        for group in groups
        for run in group.runs
        if len(points := curve(run)) > 1
    ]
    if not series:
        return None
    xs = [x for one in series for x, _ in one.points]
    ys = [y for one in series for _, y in one.points]
    low, high = accuracy_range(ys) if curve is validation_curve else (min(0.0, *ys), max(ys))
    axes = Axes(460, 280, (0, max(xs)), (low, high), (12, 12, 38, 46), number_ticks(0, max(xs), 6),
                number_ticks(low, high), "Epoch", y_label)  # fmt: skip
    return line_chart(f"{title} against epochs", axes, series, lambda x: _curve_tip(title, series, x))


def _curve_tip(title: str, series: Sequence[Series], x: float) -> Tip:
    """The value of every method at the point nearest to x, averaged over its runs."""
    lines: dict[tuple[int, str], list[float]] = {}
    for one in series:
        nearest = min(one.points, key=lambda point: abs(point[0] - x))
        lines.setdefault((one.slot, one.label), []).append(nearest[1])
    values = [(slot, label, f"{sum(found) / len(found):.3g}") for (slot, label), found in lines.items()]
    return [(None, f"{title}, epoch {x:.3g}", ""), *values]


def runs_table(study: Study) -> Table:
    quantities = [CLEAN_ACCURACY, *(measured(study, NOISE_MEANS) or NOISE_MEANS[:1])]
    columns = tuple(Column(label, numeric=numeric) for label, numeric in
                    (("Model", False), ("Seed", True), *((quantity.label, True) for quantity in quantities),
                     ("Parameters", True), ("Images", True), ("Folder", False)))  # fmt: skip
    rows = [_run_row(run, group, quantities) for group in study.groups for run in group.runs]
    return Table("runs", "Runs", "Every run in this report.", "Method", columns, (Section(None, tuple(rows)),))


def _run_row(run: Run, group: Group, quantities: Sequence[Quantity]) -> Row:
    def whole(value: object) -> Cell:
        return Cell(f"{value:,}".replace(",", " "), float(value)) if isinstance(value, int) else Cell()

    numbers = []
    for quantity in quantities:
        value = quantity.read(run)
        numbers.append(Cell() if value is None else Cell(f"{value:.1f}", value))
    cells = (Cell(run.model), Cell(str(run.seed), float(run.seed)), *numbers, whole(run.results.run.parameters),
             whole(run.results.evaluation.images), Cell(run.name))  # fmt: skip
    return Row(group.label, cells, group.slot)


@dataclass(frozen=True)
class RunDetails:
    """What a run was made with: lists of settings under their titles."""

    title: str
    name: str
    slot: int
    lists: list[tuple[str, list[tuple[str, str]]]]


def run_details(study: Study) -> list[RunDetails]:
    return [_run_details(run, group) for group in study.groups for run in group.runs]


def _run_details(run: Run, group: Group) -> RunDetails:
    about = {key: value for key, value in run.details.items() if key != "folder"}  # a page is shared, a disk is not
    parts = [("Configuration", run.config), ("Evaluation", run.results.evaluation.to_json()), ("Run", about)]
    lists = [(title, _settings(values)) for title, values in parts if values]
    return RunDetails(f"{group.label}, {run.model}, seed {run.seed}", run.name, group.slot, lists)


def _settings(values: dict[str, Any]) -> list[tuple[str, str]]:
    return [(clean_text(key), _shown(without_place(value))) for key, value in flatten(values).items()]


def without_place(value: Any) -> Any:
    """Of an absolute path, which says where things are on a disk, the last part."""
    if isinstance(value, list):
        return [without_place(word) for word in value]
    if not isinstance(value, str):
        return value
    matched = PLACE.fullmatch(value)
    return matched["before"] + re.split(r"[/\\]", matched["path"].rstrip("/\\"))[-1] if matched else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else clean_text(value)
