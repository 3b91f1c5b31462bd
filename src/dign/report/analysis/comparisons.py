"""Differences between methods, with what the seeds say about them."""

from __future__ import annotations

from dataclasses import replace

from dign.evaluation.image_record import LOSSES, POOLS
from dign.report.analysis.confidence_quantities import CALIBRATION, RAW, UNCERTAINTY
from dign.report.analysis.quantities import CLEAN_ACCURACY, MEANS, SET_MEANS, Quantity, corruption_accuracy
from dign.report.analysis.significance import TEST, Difference, compare_groups, correct, count_pairs
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


def difference_table(study: Study) -> Table | None:
    """For each model, the best method minus every other; each column is corrected for all pairs of all models.

    None where nothing can be compared, or where `comparison_table` says it all.
    """
    if len(study.groups) == 2:
        return None
    quantities = measured(study, [CLEAN_ACCURACY, *MEANS, CALIBRATION["noise", "ece"]])
    by_model = {model: [group for group in ranking(study) if group.model == model] for model in study.models}
    # The best is picked by the data: any pair might have been compared.
    pairs = {each: sum(count_pairs(ranked, each) for ranked in by_model.values()) for each in quantities}
    sections = []
    for model, ranked in by_model.items():
        if len(ranked) < 2:
            continue
        best, others = ranked[0], [group for group in study.of_model(model) if group is not ranked[0]]
        columns = [_differences(best, others, quantity, pairs[quantity]) for quantity in quantities]
        rows = [Row(group.label, tuple(column[i] for column in columns), group.slot) for i, group in enumerate(others)]
        sections.append(Section(f"{best.label} ({model}) against", tuple(rows)))
    if not sections:
        return None
    caption = (
        f"Difference of means with an interval and a p-value. {TEST} Since the best is picked by these very data "
        f"({main_quantity(study).label}), both are corrected for all pairs of methods that can be tested "
        "(Bonferroni): the intervals of a column hold together with 95 %."
    )
    columns = tuple(Column(quantity.short_label, quantity.help) for quantity in quantities)
    return Table("differences", "The best against the others", caption, "Method", columns, tuple(sections))


def _differences(best: Group, others: list[Group], quantity: Quantity, tests: int) -> list[Cell]:
    found = correct([compare_groups(best, group, quantity) for group in others], tests)
    return [
        Cell() if difference is None else Cell(describe(difference, quantity.decimals), difference.mean)
        for difference in found
    ]


def describe(difference: Difference, decimals: int = 1) -> str:
    """'+3.2 [1.1, 5.3], p = 0.012', or '+3.2, too few seeds'."""
    change = signed(difference.mean, decimals)
    if difference.p is None:
        return f"{change}, {difference.verdict}"
    if difference.half_width is None:
        return f"{change}, {difference.p_text}"
    return f"{change} {interval_text(difference, decimals)}, {difference.p_text}"


def interval_text(difference: Difference, decimals: int = 1) -> str:
    """'[1.1, 5.3]'; empty where the errors are not known."""
    width = difference.half_width
    if width is None:
        return ""
    return f"[{number(difference.mean - width, decimals)}, {number(difference.mean + width, decimals)}]"


def comparison_table(study: Study) -> Table | None:
    """Two groups side by side in everything that was measured; None where there are not exactly two."""
    if len(study.groups) != 2:
        return None
    first, second = study.groups
    quantities = [
        CLEAN_ACCURACY,
        *MEANS,
        *SET_MEANS,
        *map(corruption_accuracy, study.corruptions),
        *CALIBRATION.values(),
        *(UNCERTAINTY[place, score] for place in POOLS for score in LOSSES),
    ]
    if any(run.results.calibrator for run in study.runs):
        quantities += [replace(each, label=f"{each.label} as trained") for each in RAW.values()]
    present = measured(study, quantities)
    differences = correct([compare_groups(second, first, quantity) for quantity in present])
    rows = [
        _comparison_row(quantity, first, second, difference)
        for quantity, difference in zip(present, differences, strict=True)
    ]
    tested = sum(difference is not None and difference.p is not None for difference in differences)
    columns = (Column(first.label, slot=first.slot), Column(second.label, slot=second.slot),
               Column(f"Second {MINUS} first"), Column("Verdict", numeric=False))  # fmt: skip
    title = f"{first.label} and {second.label}"
    caption = f"Better in bold. {TEST} P-values are corrected for the {tested} rows that can be tested (Holm)."
    return Table("comparison", title, caption, "Metric", columns, (Section(None, tuple(rows)),))


def _comparison_row(quantity: Quantity, first: Group, second: Group, difference: Difference | None) -> Row:
    statistics = [first.statistic(quantity), second.statistic(quantity)]
    label, digits = f"{quantity.label} {quantity.arrow}", quantity.decimals
    if difference is None:
        shown = [statistic_cell(statistic, decimals=digits) for statistic in statistics]
        return Row(label, (*shown, Cell(), Cell()), help=quantity.help)
    a, b = (statistic.mean for statistic in statistics if statistic)
    first_wins = (a > b) == quantity.higher_is_better
    better = (False, False) if number(a, digits) == number(b, digits) else (first_wins, not first_wins)
    cells = [statistic_cell(statistic, best, digits) for statistic, best in zip(statistics, better, strict=True)]
    change = Cell(signed(difference.mean, digits), difference.mean)
    verdict = f"not tested: {difference.verdict}"
    if difference.p is not None:
        verdict = f"{difference.verdict}, {difference.p_text} over {difference.tested}"
    return Row(label, (*cells, change, Cell(verdict)), help=quantity.help)
