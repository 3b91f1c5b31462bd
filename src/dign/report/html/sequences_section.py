"""Sequences on the page: how often answers change from frame to frame, from what runs' folders hold."""

from __future__ import annotations

from dataclasses import dataclass

from dign.core.text import clean_text
from dign.report.analysis.study import Study
from dign.report.analysis.tables import Column, Row, Section, Table, runs_cell
from dign.report.load import Run

_MEAN = "mean over these"


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


def sequence_table(study: Study) -> Table | None:
    """Flips and top-5 distance of every method, a section for every perturbation; None where nothing was measured."""
    by_group = [(group, [read_stable(run) for run in group.runs]) for group in study.groups]
    by_group = [(group, [found for found in runs if found]) for group, runs in by_group]
    names = list(dict.fromkeys(name for _, runs in by_group for found in runs for name in found))
    if not names:
        return None
    sections = []
    for name in [*names, _MEAN]:
        rows = []
        for group, runs in by_group:
            here = [_pick(found, name, names) for found in runs]
            flips, distances = [one.flips for one in here if one], [one.distance for one in here if one]
            if flips:
                rows.append(Row(group.label, (runs_cell(flips, 2), runs_cell(distances, 3)), group.slot))
        if rows:
            sections.append(Section(name.replace("_", " "), tuple(rows)))
    columns = (
        Column("Flips %", "frames whose answer differs from that of the frame they are compared with; less is better"),
        Column("Top-5 distance", "how far the five likeliest classes move in the ranking, 0 to 15; less is better"),
    )
    caption = "How stable answers are over sequences of slightly changed frames (dign evaluate --sequences)."
    return Table("sequences", "Sequences", caption, "Perturbation", columns, tuple(sections))


def _pick(found: dict[str, Stable], name: str, names: list[str]) -> Stable | None:
    """One perturbation of a run, or its mean, which a run that lacks some of them does not have."""
    if name != _MEAN:
        return found.get(name)
    if set(found) != set(names):
        return None
    count = len(found)
    return Stable(sum(one.flips for one in found.values()) / count, sum(one.distance for one in found.values()) / count)
