"""Accuracy by class and confusion matrices on the page, where results have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from dign.report.analysis.classes import Matrix, Pair, classes_of, most_confused, pool_matrices
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import NOTHING, number
from dign.report.html.charts import svg, tip_text
from dign.report.html.labels import shorten, text_width
from dign.report.html.markup import tag
from dign.report.html.result_sections import ModelPart, per_model

MOST = 20
"""Classes up to which there is a matrix with all of them; of more, as many pairs and classes are listed."""
FEW = 6
"""Classes up to which their names may take more room than their cells need."""
MOST_WITH_NUMBERS = 12
"""Classes up to which a cell has room for its number."""
WIDTH = 300.0
STRONGEST = 0.55
"""Opacity of a full cell: text on it stays readable."""


@dataclass(frozen=True)
class Bar:
    """A class's accuracy under one condition; `width` is None for a class without images."""

    text: str
    width: str | None


@dataclass(frozen=True)
class Shown:
    """One condition: its matrix as a chart, or its pairs where there are too many classes for one."""

    title: str
    accuracy: str
    seeds: str
    chart: Markup | None
    pairs: list[Pair]


@dataclass(frozen=True)
class ClassCard:
    """A method with its accuracy by class under each condition, and how it confuses the classes."""

    label: str
    slot: int
    columns: list[str]
    rows: list[tuple[str, list[Bar]]]
    left_out: int
    shown: list[Shown]
    dense: bool
    """Whether a matrix has so many cells that it takes the whole width of the card."""


def class_parts(study: Study) -> list[ModelPart]:
    """A card for every method whose results have confusion matrices."""

    def build(groups: Sequence[Group]) -> list[ClassCard] | None:
        return [card for group in groups if (card := _card(group))] or None

    return per_model(study, build)


def _card(group: Group) -> ClassCard | None:
    classes, matrices = classes_of(group), pool_matrices(group)
    if not matrices:
        return None
    accuracies = [matrix.matrix.accuracy_by_class for matrix in matrices]
    order = list(range(len(classes)))
    if len(classes) > MOST:  # those with the lowest accuracy under the last condition, the worst one, then before
        order.sort(key=lambda index: [_rank(column[index]) for column in reversed(accuracies)])
    rows = [(classes[index], [_bar(column[index]) for column in accuracies]) for index in order[:MOST]]
    return ClassCard(
        group.label,
        group.slot,
        [matrix.title for matrix in matrices],
        rows,
        len(classes) - len(rows),
        [_show(group, matrix, classes) for matrix in matrices],
        MOST_WITH_NUMBERS < len(classes) <= MOST,
    )


def _rank(accuracy: float | None) -> float:
    """Classes without images come last."""
    return 101.0 if accuracy is None else accuracy


def _bar(accuracy: float | None) -> Bar:
    return Bar(NOTHING, None) if accuracy is None else Bar(number(accuracy), f"{accuracy:.1f}")


def _show(group: Group, matrix: Matrix, classes: Sequence[str]) -> Shown:
    few = len(classes) <= MOST
    title = f"Confusion of {group.label}, {matrix.title.lower()}"
    return Shown(
        matrix.title,
        number(matrix.accuracy),
        "" if matrix.seeds == len(group.runs) else f"{matrix.seeds} of {len(group.runs)} seeds",
        confusion_chart(title, matrix.matrix.counts, classes, group.slot) if few else None,
        [] if few else most_confused(matrix.matrix, classes, MOST),
    )


def confusion_chart(title: str, counts: Sequence[Sequence[int]], classes: Sequence[str], slot: int) -> Markup:
    """A confusion matrix: rows are true classes, columns predicted ones, numbers are percent of the row."""
    size = 11.0 if len(classes) <= MOST_WITH_NUMBERS else 8.5
    most = 0.4 if len(classes) <= FEW else 0.27
    room = min(max(text_width(name, size) for name in classes) + 8, most * WIDTH)
    side = (WIDTH - room - 2) / len(classes)
    names = [shorten(name, room - 6, size) for name in classes]
    upright = all(text_width(name, size) <= side for name in names)
    top = 18.0 if upright else room
    style = f"font-size:{size:g}px"
    cells, numbers, labels, hits = [], [], [], []
    for i, row in enumerate(counts):
        y = top + i * side
        labels.append(tag("text", names[i], x=room - 5, y=y + side / 2 + 0.35 * size, text_anchor="end", style=style))
        labels.append(_column_label(names[i], room + (i + 0.5) * side, top, size, upright))
        for j, count in enumerate(row):
            x, share = room + j * side, count / max(sum(row), 1)
            box = {"x": x + 0.5, "y": y + 0.5, "width": side - 1, "height": side - 1}
            kind = "right" if i == j else "wrong"
            cells.append(tag("rect", class_="empty", **box))
            if count:
                cells.append(tag("rect", class_=kind, fill_opacity=STRONGEST * share**0.5, **box))
            if count and len(classes) <= MOST_WITH_NUMBERS and round(100 * share):
                place = {"x": x + side / 2, "y": y + side / 2 + 0.35 * size, "text_anchor": "middle"}
                fitting = min(size, side / 2.1)
                numbers.append(
                    tag("text", f"{100 * share:.0f}", class_="cell", style=f"font-size:{fitting:.3g}px", **place)
                )
            hits.append(tag("rect", class_="hit", data_tip=_tip(classes[i], classes[j], count, sum(row), slot), **box))
    marks = tag("g", cells, class_=f"confusion s{slot}")
    return svg(WIDTH, top + len(classes) * side + 2, title, marks, numbers, labels, hits, zoom=1.4)


def _column_label(name: str, x: float, top: float, size: float, upright: bool) -> Markup:
    style = f"font-size:{size:g}px"
    if upright:
        return tag("text", name, x=x, y=top - 5, text_anchor="middle", style=style)
    turned = f"translate({x + 0.35 * size:.2f} {top - 5:.2f}) rotate(-90)"
    return tag("text", name, transform=turned, style=style)


def _tip(true: str, predicted: str, count: int, total: int, slot: int) -> str:
    what = "Right" if true == predicted else f"Taken for {predicted}"
    share = f"{number(100 * count / total)} %" if total else NOTHING
    return tip_text([(None, true, ""), (slot, what, share), (None, "Images", f"{count} of {total}")])
