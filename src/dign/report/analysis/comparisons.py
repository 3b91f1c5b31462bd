"""Differences between methods, with what the seeds say about them."""

from __future__ import annotations

from dataclasses import replace

from dign.report.analysis.quantities import CALIBRATION, CLEAN_ACCURACY, MEANS, Quantity, corruption_accuracy
from dign.report.analysis.significance import Difference, compare, holm
from dign.report.analysis.story import main_quantity, ranking
from dign.report.analysis.study import Group, Study
from dign.report.analysis.tables import (
    MINUS,
    Cell,
    Column,
    Row,
    Section,
    Table,
    measured,
    number,
    signed,
    statistic_cell,
)

TEST = "paired t-test over the seeds that both have, two-sided; fewer than three: too few seeds"


def difference_table(study: Study) -> Table | None:
    """For each model, the best method minus every other, with Holm's correction for so many comparisons.

    None where nothing can be compared, or where `comparison_table` says it all.
    """
    if len(study.groups) == 2:
        return None
    quantities = measured(study, [CLEAN_ACCURACY, *MEANS, CALIBRATION["noise", "ece"]])
    sections = []
    for model in study.models:
        ranked = [group for group in ranking(study) if group.model == model]
        if len(ranked) < 2:
            continue
        best, others = ranked[0], [group for group in study.of_model(model) if group is not ranked[0]]
        columns = [_differences(best, others, quantity) for quantity in quantities]
        rows = [Row(group.label, tuple(column[i] for column in columns), group.slot) for i, group in enumerate(others)]
        sections.append(Section(f"{best.label} ({model}) against", tuple(rows)))
    if not sections:
        return None
    caption = (
        f"Difference of means with its 95 % interval and p-value ({TEST}), corrected for the number of comparisons "
        f"in a column (Holm). Best: by {main_quantity(study).label}."
    )
    columns = tuple(Column(quantity.label.removeprefix("Corrupt "), quantity.help) for quantity in quantities)
    return Table("differences", "The best against the others", caption, "Method", columns, tuple(sections))


def _differences(best: Group, others: list[Group], quantity: Quantity) -> list[Cell]:
    own = best.statistic(quantity)
    found = [compare(own, s) if own and (s := group.statistic(quantity)) else None for group in others]
    corrected = holm([difference.p if difference else None for difference in found])
    return [
        Cell() if difference is None else Cell(describe(replace(difference, p=p)), difference.mean)
        for difference, p in zip(found, corrected, strict=True)
    ]


def describe(difference: Difference) -> str:
    """'+3.2 [1.1, 5.3], p = 0.012', or '+3.2, too few seeds'."""
    if difference.p is None:
        return f"{signed(difference.mean)}, {difference.verdict}"
    low, high = difference.mean - difference.half_width, difference.mean + difference.half_width
    return f"{signed(difference.mean)} [{number(low)}, {number(high)}], {difference.p_text}"


def comparison_table(study: Study) -> Table | None:
    """Two groups side by side in everything that was measured; None where there are not exactly two."""
    if len(study.groups) != 2:
        return None
    first, second = study.groups
    quantities = [CLEAN_ACCURACY, *MEANS, *map(corruption_accuracy, study.corruptions), *CALIBRATION.values()]
    rows = [_comparison_row(quantity, first, second) for quantity in measured(study, quantities)]
    columns = (Column(first.label, slot=first.slot), Column(second.label, slot=second.slot),
               Column(f"Second {MINUS} first"), Column("Over seeds", numeric=False))  # fmt: skip
    title = f"{first.label} and {second.label}"
    caption = f"Better in bold. Over seeds: {TEST}."
    return Table("comparison", title, caption, "Metric", columns, (Section(None, tuple(rows)),))


def _comparison_row(quantity: Quantity, first: Group, second: Group) -> Row:
    statistics = [first.statistic(quantity), second.statistic(quantity)]
    label = f"{quantity.label} {quantity.arrow}"
    if None in statistics:
        return Row(label, (*map(statistic_cell, statistics), Cell(), Cell()), help=quantity.help)
    a, b = (statistic.mean for statistic in statistics)
    first_wins = (a > b) == quantity.higher_is_better
    better = (False, False) if number(a) == number(b) else (first_wins, not first_wins)
    difference = compare(statistics[1], statistics[0])
    cells = [statistic_cell(statistic, best) for statistic, best in zip(statistics, better, strict=True)]
    change = Cell(signed(difference.mean), difference.mean)
    verdict = "too few seeds" if difference.p is None else f"{difference.verdict}, {difference.p_text}"
    return Row(label, (*cells, change, Cell(verdict)), help=quantity.help)
