"""Knowing when it is unsure: risk against coverage, and how promises hold as corruptions grow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from markupsafe import Markup

from dign.metrics import risk_coverage
from dign.report.analysis.confidence_quantities import read_promise
from dign.report.analysis.quantities import Quantity
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import describe_missing_promises, number
from dign.report.html.charts import Axes, Series, Tip, end_label_room, line_chart, number_ticks
from dign.report.html.result_sections import Against, ModelPart, per_model, severity_chart
from dign.report.load import Run
from dign.report.palette import dash_of
from dign.report.scales import accuracy_range, error_range

POINTS = 50
Pair = tuple[str, int]


def unsure_parts(study: Study) -> list[ModelPart]:
    """Per model: risk-coverage curves, clean and under noise, and promises by severity; nothing for older results."""
    names = study.noises or study.counted
    corrupted = "Noise" if study.noises else "All corruptions"

    def build(groups: Sequence[Group]) -> dict[str, Any] | None:
        curves = [
            chart
            for title, keep in (("Clean images", _is_clean), (corrupted, lambda pair: pair[0] in names))
            if (chart := risk_chart(groups, title, keep)) is not None
        ]
        promises = promise_charts(study, groups)
        missing = describe_missing_promises(groups)
        return {"curves": curves, "promises": promises, "missing": missing} if curves or promises else None

    return per_model(study, build)


def _is_clean(pair: Pair) -> bool:
    return pair[0] == "clean"


def risk_chart(groups: Sequence[Group], title: str, keep: Callable[[Pair], bool]) -> tuple[str, Markup] | None:
    """Error among the most confident images against the share of them; None where no run keeps its images."""
    series = []
    for group in groups:
        found = [gather_images(run, keep) for run in group.runs]
        parts = [part for part in found if part is not None]
        if parts:
            confidence, correct = (torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True))
            coverage, risk = risk_coverage(confidence, correct, POINTS)
            points = [(100 * x, 100 * y) for x, y in zip(coverage, risk, strict=True)]
            series.append(Series(group.label, group.slot, points, None, dash_of(group), markers=False))
    if not series:
        return None
    y_range = error_range([y for one in series for _, y in one.points])
    right = end_label_room([one.label for one in series])
    axes = Axes(460.0, 300.0, (0, 100), y_range, (12, right, 36, 44), number_ticks(0, 100), number_ticks(*y_range),
                "Images answered, the most confident first, %", "Wrong among them, %")  # fmt: skip

    def tip(place: float) -> Tip:
        lines = [(one.slot, one.label, f"{number(_at(one, place))} %") for one in series]
        return [(None, f"{title}, {number(place)} % answered", ""), *lines]

    return title, line_chart(f"Risk and coverage: {title.lower()}", axes, series, tip, end_labels=True)


def gather_images(run: Run, keep: Callable[[Pair], bool]) -> tuple[np.ndarray, np.ndarray] | None:
    """Confidence and whether it is right, of every image under the conditions to keep; None where none is kept."""
    record = run.results.images
    pairs = [pair for pair in record.conditions if keep(pair)] if record else []
    if record is None or not pairs:
        return None
    confidence = np.concatenate([record.conditions[pair].confidence for pair in pairs])
    return confidence, np.concatenate([record.correct(pair) for pair in pairs])


def _at(series: Series, place: float) -> float:
    return min(series.points, key=lambda point: abs(point[0] - place))[1]


def promise_charts(study: Study, groups: Sequence[Group]) -> list[tuple[str, str, Markup]]:
    """Coverage of prediction sets, share answered and error among the answers, by severity."""
    promised = next((run.results.promises for group in groups for run in group.runs if run.results.promises), None)
    names = study.counted or tuple(study.corruptions)
    if promised is None or not names:
        return []
    coverage, error = 100 * promised.coverage, 100 * promised.error
    kinds = (
        ("coverage", "True class in the set, %", f"Sets that promise {coverage:g} %", (coverage, "promised")),
        ("error", "Wrong answers, %", f"Answers that promise at most {error:g} % wrong", (error, "promised")),
        ("answered", "Answered, %", f"How many are answered under that promise of {error:g} %", None),
    )
    charts = []
    for key, label, title, promise in kinds:
        places = (0, *study.severities)
        levels = tuple(_promise(key, place, names) for place in places)
        what = Against(title, places, levels, label, promise)
        values = what.values(groups)
        if values:
            low, high = accuracy_range([*values, coverage]) if key == "coverage" else (0.0, 100.0)
            span = error_range([*values, 1.2 * error]) if key == "error" else (low, high)
            charts.append((key, title, severity_chart(groups, what, span, large=True)))
    return charts


def _promise(key: str, severity: int, names: Sequence[str]) -> Quantity:
    """How a promise holds at one severity, over all corruptions; severity 0 is clean."""

    def read(run: Run) -> float | None:
        corruptions = run.results.corruptions
        found = [run.results.clean] if severity == 0 else [
            condition for name in names if name in corruptions
            if (condition := corruptions[name].severities.get(severity)) is not None
        ]  # fmt: skip
        return read_promise(found, key)

    text = "clean" if severity == 0 else f"severity {severity}"
    return Quantity(f"promise_{key}_{severity}", text.capitalize(), f"{key} at {text}", key != "error", read)
