"""Sequences on the page: how often answers change from frame to frame, from what runs' folders hold."""

from __future__ import annotations

from dataclasses import dataclass

from dign.core.text import clean_text
from dign.report.analysis.quantities import corruption_title
from dign.report.analysis.study import Study
from dign.report.analysis.tables import Column, Row, Section, Table, mark_best, runs_cell
from dign.report.load import Run

_MEAN = "mean"


@dataclass(frozen=True)
class Stable:
    """One perturbation in a `sequences.json`: percent of frames whose answer flips, and the top-5 distance."""

    flips: float
    distance: float


def read_stable(run: Run) -> dict[str, Stable]:
    """By perturbation; a file or an entry that makes no sense is left out."""
    content = run.sequences.get("sequences") if run.sequences else None
    found = {}
    for name, scores in (content if isinstance(content, dict) else {}).items():
        try:
            one = Stable(float(scores["flip_probability"]), float(scores["top5_distance"]))
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        if 0 <= one.flips <= 100 and 0 <= one.distance <= 15:
            found[clean_text(name)] = one
    return found


def sequence_tables(study: Study) -> list[Table]:
    """Flips and top-5 distance by perturbation, a column per method; nothing where nothing was measured."""
    by_group = [(group, [found for run in group.runs if (found := read_stable(run))]) for group in study.groups]
    by_group = [(group, runs) for group, runs in by_group if runs]
    names = list(dict.fromkeys(name for _, runs in by_group for found in runs for name in found))
    columns = tuple(Column(group.label, slot=group.slot) for group, _ in by_group)
    tables = []
    for key, title, decimals in (("flips", "Flips, % ↓", 2), ("distance", "Top-5 distance ↓", 3)):
        rows = []
        for name in [*names, _MEAN]:
            found = [[one for run in runs if (one := _pick(run, name, names))] for _, runs in by_group]
            cells = [runs_cell([getattr(one, key) for one in some], decimals) for some in found]
            rows.append(Row(corruption_title(name), mark_best(cells, highest=False)))
        tables.append(Table(key, title, "", "Perturbation", columns, (Section(None, tuple(rows)),)))
    return tables if names else []


def _pick(found: dict[str, Stable], name: str, names: list[str]) -> Stable | None:
    """One perturbation of a run, or its mean, which a run that lacks some of them does not have."""
    if name != _MEAN:
        return found.get(name)
    if set(found) != set(names):
        return None
    count = len(found)
    return Stable(sum(one.flips for one in found.values()) / count, sum(one.distance for one in found.values()) / count)
