"""What the variants of a method are: the settings in which they differ, as a table."""

from __future__ import annotations

from dign.report.analysis.study import Study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table


def settings_table(study: Study) -> Table | None:
    """A row per variant, a column per setting that differs; None where all groups are told apart by their method."""
    names = list(dict.fromkeys(name for group in study.groups for name, _ in group.settings))
    if not names:
        return None
    sections = []
    for model in study.models:
        groups = [group for group in study.of_model(model) if group.settings]
        rows = tuple(
            Row(group.label, tuple(_cell(dict(group.settings).get(name)) for name in names), group.slot)
            for group in groups
        )
        if rows:
            sections.append(Section(model if len(study.models) > 1 else None, rows))
    columns = tuple(Column(name) for name in names)
    caption = "The settings in which runs of one method differ; all others are the same (see Runs)."
    return Table("settings", "What differs", caption, "Method", columns, tuple(sections))


def _cell(value: str | None) -> Cell:
    if value is None:
        return Cell()
    try:
        return Cell(value, float(value))
    except ValueError:
        return Cell(value)
