"""From paths of runs to a written report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dign.core.errors import UserError
from dign.core.files import write_text
from dign.core.text import clean_text
from dign.report.analysis.claims import claims_table
from dign.report.analysis.comparisons import comparison_table, difference_table
from dign.report.analysis.losses import loss_tables
from dign.report.analysis.outlier_table import outlier_table
from dign.report.analysis.paper import paper_comparison
from dign.report.analysis.settings import settings_table
from dign.report.analysis.study import Group, Study, make_study
from dign.report.analysis.tables import (
    Table,
    corruption_table,
    corruption_uncertainty_table,
    paper_tables,
    promise_table,
    severity_table,
    summary_table,
    temperature_table,
    uncertainty_table,
)
from dign.report.html.page import build_page
from dign.report.load import Run, load_runs
from dign.report.text.formats import WRITERS, to_csv_layout

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".csv": "csv", ".tex": "latex"}
"""What the suffix of a file says that is to be written into it."""


def make_report(runs: Path | str | Sequence[Path | str], out: Path | str, *, data: str | None = None) -> Path:
    """Write a report on evaluated runs: a self-contained page, or its tables.

    Args:
        runs: An evaluated run folder, a folder that contains some, or a sequence of these.
        out: The file to write: a page for `.html`, tables for `.md`, `.csv` and `.tex`.
        data: Takes only the runs of this data set.

    Returns:
        The path of the file that was written.

    Raises:
        UserError: If no run can be read, the runs are of several data sets, or `out` has another suffix.

    Example:
        >>> make_report("runs", "report.pdf")
        Traceback (most recent call last):
        dign.core.errors.UserError: invalid report file 'report.pdf': expected a name in .html, .htm, .md, .csv or .tex
        >>> make_report(["runs/standard", "runs/dign"], "report.html")  # doctest: +SKIP
        PosixPath('report.html')
    """
    format = format_of(out)
    paths = [runs] if isinstance(runs, Path | str) else list(runs)
    if not paths:
        raise UserError("runs is empty: expected at least one evaluated run folder")
    return write_report(study_of(paths, data), Path(out), format)[0]


def format_of(out: Path | str) -> str:
    """The format that a file's suffix stands for."""
    suffix = Path(out).suffix.lower()
    if suffix not in FORMATS:  # the file may be a picture or a run's results: never write over it
        *most, last = FORMATS
        raise UserError(f"invalid report file '{clean_text(out)}': expected a name in {', '.join(most)} or {last}")
    return FORMATS[suffix]


def study_of(paths: Sequence[Path | str], data: str | None = None) -> Study:
    """The study of the runs in `paths`; `data` keeps those of one data set."""
    runs, warnings = load_runs(paths)
    if data is not None:
        known = sorted({run.data for run in runs})
        runs = [run for run in runs if run.data == data]
        if not runs:
            raise UserError(f"none of these runs is of the data set '{clean_text(data)}': expected {', '.join(known)}")
    return make_study(runs, warnings)


def comparison_of(first: Path | str, second: Path | str) -> Study:
    """The study of two sides, each a run or a folder of runs of one method, under names that tell them apart."""
    sides = [load_runs([path]) for path in (first, second)]
    study = make_study([run for runs, _ in sides for run in runs], [note for _, notes in sides for note in notes])
    groups = [_side(path, runs) for path, (runs, _) in zip((first, second), sides, strict=True)]
    if groups[0].label == groups[1].label:
        names = _names_apart(Path(first), Path(second))
        groups = [replace(g, label=f"{g.label} [{clean_text(n)}]") for g, n in zip(groups, names, strict=True)]
        groups[1] = replace(groups[1], slot=groups[0].slot + 3)  # another color and another marker
    notes = [note for note in study.warnings if "each run is shown alone" not in note]
    return Study(study.data, tuple(groups), notes)


def _side(path: Path | str, runs: list[Run]) -> Group:
    groups = make_study(runs).groups
    if len(groups) > 1:
        raise UserError(
            f"'{clean_text(path)}' holds several methods ({', '.join(g.label for g in groups)}): "
            f"compare folders with one method each, or report on all of them together"
        )
    return groups[0]


def _names_apart(first: Path, second: Path) -> tuple[str, str]:
    """The last part of the two paths in which they differ."""
    a, b = first.resolve().parts, second.resolve().parts
    for one, other in zip(reversed(a), reversed(b), strict=False):
        if one != other:
            return one, other
    return str(first), str(second)


def write_report(study: Study, out: Path, format: str = "html") -> list[Path]:
    """Write the report; as CSV into a path without suffix, one file per table. Returns the files written."""
    if format == "csv" and not out.suffix:
        tables = all_tables(study)
        paths = [out / f"{table.key}.csv" for table in tables]
        for table, path in zip(tables, paths, strict=True):
            write_text(path, to_csv_layout(table))
        return paths
    if out.is_dir():
        raise UserError(f"'{clean_text(out)}' is a folder: expected the file that the report goes to")
    write_text(out, report_text(study, format))
    return [out]


def all_tables(study: Study) -> list[Table]:
    """Every table that these runs have numbers for."""
    tables = [
        summary_table(study),
        *loss_tables(study),
        settings_table(study),
        comparison_table(study),
        difference_table(study),
    ]
    tables += [temperature_table(study), uncertainty_table(study)]
    if study.corruptions:
        tables += [corruption_table(study), severity_table(study), corruption_uncertainty_table(study)]
    tables += [promise_table(study), outlier_table(study)]
    tables += [*paper_tables(study), paper_comparison(study), claims_table(study)]
    return [table for table in tables if table is not None]


def report_text(study: Study, format: str) -> str:
    return build_page(study) if format == "html" else WRITERS[format](all_tables(study))
