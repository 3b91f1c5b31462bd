"""The parts of the page that show the runs themselves: training curves, configurations."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from dign.evaluation.results import clean_text, is_number
from dign.report.analysis.quantities import CLEAN_ACCURACY, MCA_N
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table
from dign.report.html.charts import Axes, Series, Tip, line_chart, number_ticks
from dign.report.html.markup import Html, join, tag
from dign.report.html.result_sections import html_table, per_model, swatch
from dign.report.load import Run, flatten
from dign.report.palette import dash_of

PLACE = re.compile(
    r"(?P<before>(--[\w.-]+=)?(folder:|hub:)?)(?P<path>([A-Za-z]:|~[^/\\]*)?[/\\](?![/\\]).*)", re.DOTALL
)
"""An absolute path, alone or after what may stand before one; no URL."""
POINTS = 100
"""A training curve is thinned to about so many points."""


def training_section(study: Study) -> Html | None:
    """Validation accuracy and training loss against epochs, of every run that left its metrics."""
    if not any(run.metrics for run in study.runs):
        return None

    def build(groups: Sequence[Group]) -> Html:
        figures = [
            _curves("Validation accuracy", "Accuracy, %", groups, validation_curve),
            _curves("Training loss", "Loss", groups, loss_curve),
        ]
        note = "Methods add terms of their own to the loss, so losses of different methods cannot be compared."
        return join(tag("div", figures, class_="panels wide"), tag("p", note, class_="note"))

    return per_model(study, build)


def validation_curve(run: Run) -> list[tuple[float, float]]:
    """(epochs done, accuracy in percent) of every validation."""
    found = [
        (record.get("epoch"), record["validation"].get("accuracy"))
        for record in run.metrics
        if isinstance(record.get("validation"), dict)
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


def _curves(title: str, y_label: str, groups: Sequence[Group], curve) -> Html | None:
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
    low, high = (0.0, max(ys)) if "loss" in title else (10 * math.floor(min(ys) / 10), 100.0)
    axes = Axes(460, 280, (0, max(xs)), (low, high), (12, 12, 38, 46), number_ticks(0, max(xs), 6),
                number_ticks(low, high), "Epoch", y_label)  # fmt: skip
    chart = line_chart(f"{title} against epochs", axes, series, lambda x: _curve_tip(title, series, x))
    return tag("figure", tag("figcaption", title, class_="above"), chart)


def _curve_tip(title: str, series: Sequence[Series], x: float) -> Tip:
    """The value of every method at the point nearest to x, averaged over its runs."""
    lines: dict[tuple[int, str], list[float]] = {}
    for one in series:
        nearest = min(one.points, key=lambda point: abs(point[0] - x))
        lines.setdefault((one.slot, one.label), []).append(nearest[1])
    values = [(slot, label, f"{sum(found) / len(found):.3g}") for (slot, label), found in lines.items()]
    return [(None, f"{title}, epoch {x:.3g}", ""), *values]


def runs_section(study: Study) -> Html:
    """A table of all runs, and what each of them was made with."""
    columns = tuple(Column(label, numeric=numeric) for label, numeric in
                    (("Model", False), ("Seed", True), ("Clean acc.", True), ("mCA-N", True), ("Parameters", True),
                     ("Images", True), ("Folder", False)))  # fmt: skip
    rows = [_run_row(run, group) for group in study.groups for run in group.runs]
    table = Table("runs", "Runs", "Every run in this report.", "Method", columns, (Section(None, tuple(rows)),))
    details = [_run_details(run, group) for group in study.groups for run in group.runs]
    return join(html_table(table, sortable=True, identifier="runs-table"), tag("h3", "Configurations"), details)


def _run_row(run: Run, group: Group) -> Row:
    def whole(value: object) -> Cell:
        return Cell(f"{value:,}".replace(",", " "), float(value)) if isinstance(value, int) else Cell()

    numbers = []
    for quantity in (CLEAN_ACCURACY, MCA_N):
        value = quantity.read(run)
        numbers.append(Cell() if value is None else Cell(f"{value:.1f}", value))
    cells = (Cell(run.model), Cell(str(run.seed), float(run.seed)), *numbers, whole(run.parameters),
             whole(run.evaluation.get("images")), Cell(run.name))  # fmt: skip
    return Row(group.label, cells, group.slot)


def _run_details(run: Run, group: Group) -> Html:
    summary = tag("summary", swatch(group.slot), f"{group.label}, {run.model}, seed {run.seed} ",
                  tag("span", run.name, class_="note"))  # fmt: skip
    about = {key: value for key, value in run.details.items() if key != "folder"}  # a page is shared, a disk is not
    parts = [("Configuration", run.config), ("Evaluation", run.evaluation), ("Run", about)]
    lists = [[tag("h4", title), _settings(values)] for title, values in parts if values]
    return tag("details", summary, tag("div", lists, class_="settings"), class_=f"s{group.slot}")


def _settings(values: dict[str, Any]) -> Html:
    shown = ((key, _shown(_placeless(value))) for key, value in flatten(values).items())
    return tag("dl", [tag("div", tag("dt", clean_text(key)), tag("dd", value)) for key, value in shown])


def _placeless(value: Any) -> Any:
    """Without where things lie on somebody's disk: of an absolute path the last part."""
    if isinstance(value, list):
        return [_placeless(word) for word in value]
    if not isinstance(value, str):
        return value
    matched = PLACE.fullmatch(value)
    return matched["before"] + re.split(r"[/\\]", matched["path"].rstrip("/\\"))[-1] if matched else value


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else clean_text(value)
