"""The opening lines: which model keeps its accuracy under noise, in plain words, from the numbers."""

from __future__ import annotations

from dign.report.analysis.confidence_quantities import CALIBRATION
from dign.report.analysis.quantities import CLEAN_ACCURACY, MEANS, Quantity
from dign.report.analysis.significance import MIN_SEEDS, compare_groups, correct, count_pairs
from dign.report.analysis.study import Group, Study, spell_out
from dign.report.analysis.tables import number, statistic_cell

_UNDER = {
    "mca_n": "under noise",
    "noise_mean": "under noise",
    "mca": "under corruptions",
    "corruption_mean": "under corruptions",
    "clean_accuracy": "on clean images",
}


def main_quantity(study: Study) -> Quantity:
    """mCA-N where it was measured, else another mean over corruptions, else clean accuracy."""
    return next(q for q in (*MEANS, CLEAN_ACCURACY) if any(q.read(run) is not None for run in study.runs))


def ranking(study: Study) -> list[Group]:
    """Groups that have the main quantity, best first."""
    quantity = main_quantity(study)
    ranked = [group for group in study.groups if group.mean(quantity) is not None]
    return sorted(ranked, key=lambda group: -group.mean(quantity))


def name_of(group: Group, study: Study) -> str:
    return group.label if len(study.models) == 1 else f"{group.label} on {group.model}"


def rival_of(best: Group, ranked: list[Group]) -> Group | None:
    """What the best is compared with: Standard on the same model, else the next best."""
    standard = [g for g in ranked if g.label == "Standard" and g.model == best.model and g is not best]
    return (standard or ranked[1:] or [None])[0]


def headline(study: Study) -> str:
    quantity, ranked = main_quantity(study), ranking(study)
    under, best = _UNDER[quantity.key], ranked[0]
    mean = number(best.mean(quantity))
    rival = rival_of(best, ranked)
    if rival is None:
        return f"{name_of(best, study)} is right on {mean} % of the images {under}."
    other = number(rival.mean(quantity))
    if other == mean:
        return f"{name_of(best, study)} and {name_of(rival, study)} keep the same accuracy {under}: {mean} %."
    return f"{name_of(best, study)} keeps {mean} % accuracy {under}; {name_of(rival, study)} keeps {other} %."


def opening(study: Study) -> list[str]:
    """Sentences for under the headline."""
    quantity, ranked = main_quantity(study), ranking(study)
    best, rival = ranked[0], rival_of(ranked[0], ranked)
    cell = statistic_cell(best.statistic(quantity))
    what = quantity.help[0].lower() + quantity.help[1:].replace(", in percent.", "")
    name = name_of(best, study)
    if best.settings and best.label != spell_out(best):  # a letter or a number says nothing by itself
        bare = ", ".join(value for _, value in best.settings)
        name = f"{name.replace(f' ({bare})', '')} ({best.settings_text})"
    standing = f" is the best of {len(ranked)}" if len(ranked) > 1 else ""
    lines = [f"{name}{standing}: {cell.plain} % {what} ({quantity.label})."]
    if quantity is not CLEAN_ACCURACY:
        lines += [_clean_line(best, ranked, study)]
    lines += _calibration_line(best, rival, study)
    lines += [_luck_line(ranked, quantity, study)]
    return lines


def _clean_line(best: Group, ranked: list[Group], study: Study) -> str:
    mean = best.mean(CLEAN_ACCURACY)
    others = [group for group in ranked if group is not best]
    leader = max(others, key=lambda group: group.mean(CLEAN_ACCURACY), default=best)
    behind = leader.mean(CLEAN_ACCURACY) - mean
    if leader is best or number(behind) == "0.0":
        return f"On clean images it is right on {number(mean)} %."
    if behind < 0:
        return f"On clean images it is right on {number(mean)} %, which no other reaches."
    there = f"{name_of(leader, study)}, the best there"
    return f"On clean images it is right on {number(mean)} %, {number(behind)} points below {there}."


def _calibration_line(best: Group, rival: Group | None, study: Study) -> list[str]:
    ece = CALIBRATION["noise", "ece"]
    own = best.mean(ece)
    if own is None:
        return []
    line = f"Under noise its confidence differs from its accuracy by {number(own)} points (ECE)"
    other = rival.mean(ece) if rival else None
    return [line + (f"; {name_of(rival, study)}'s by {number(other)}." if other is not None else ".")]


def _luck_line(ranked: list[Group], quantity: Quantity, study: Study) -> str:
    if len(ranked) == 1:
        return "There is nothing to compare it with."
    best, second = ranked[0], ranked[1]
    pairs = count_pairs(ranked, quantity)  # the two are picked by the data: any pair might have been
    (difference,) = correct([compare_groups(best, second, quantity)], max(pairs, 1))
    assert difference is not None  # both are ranked by it
    if number(difference.mean) == "0.0":
        return f"The next best, {name_of(second, study)}, is level with it."
    lead = f"Its lead over the next best, {name_of(second, study)}, is {number(difference.mean)} points"
    if difference.p is None:
        return f"{lead}; with fewer than {MIN_SEEDS} seeds in common, nobody can say whether that is luck."
    corrected = f", corrected for {pairs} pairs" if pairs > 1 else ""
    test = f"{lead}, {difference.verdict} over {difference.tested} ({difference.p_text}{corrected})"
    return f"{test}." if difference.p_seeds is not None else f"{test}; another training may turn it around."
