"""`dign report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dign.cli.messages import make_table_console, say
from dign.cli.options import json_option, print_json, quiet_option
from dign.core.errors import UserError

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from dign.report.analysis.tables import Table

FORMATS = ("html", "markdown", "csv", "latex")


@click.command("report", short_help="Show results: a page, tables, a picture.")
@click.argument("runs", nargs=-1, type=click.Path())
@click.option("--out", type=click.Path(), help="file to write (default: report.html; tables go to the terminal)")
@click.option("--format", "format_", type=click.Choice(FORMATS), help="default: what the ending of --out says, or html")
@click.option("--compare", nargs=2, type=click.Path(), metavar="A B", help="compare two results, one method each")
@click.option("--data", help="take only the runs of this data set")
@click.option("--figure", type=click.Path(), help="also draw accuracy and calibration under noise as a PNG picture")
@quiet_option
@json_option
def command(
    runs: tuple[str, ...],
    out: str | None,
    format_: str | None,
    compare: tuple[str, str] | None,
    data: str | None,
    figure: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Report on RUNS: evaluated run folders, or folders that contain them.

    Runs that differ in their seed alone are averaged. The page is one file that opens from disk without a
    network. CSV into a path without an ending gives one file per table.

    \b
    Examples:
      dign report runs/standard runs/dign --out report.html
      dign report runs --format latex --out tables.tex
      dign report runs --format markdown
      dign report --compare runs/dign-a runs/dign-b --out compare.html
      dign report runs --out report.html --figure result.png
    """
    from dign.report.analysis.study import SeveralDataSets
    from dign.report.analysis.tables import summary_table
    from dign.report.make import comparison_of, report_text, study_of, write_report

    if bool(runs) == bool(compare):
        raise UserError("Give either run folders, as in `dign report runs/a runs/b`, or --compare A B.")
    format_ = format_ or _format_of(out)
    if figure and (Path(figure).suffix.lower() != ".png" or (out and Path(out) == Path(figure))):
        raise UserError(f"invalid --figure '{figure}': expected a file of its own that ends in .png")
    try:
        study = comparison_of(*compare) if compare else study_of(runs, data)
    except SeveralDataSets as error:
        raise UserError(f"{error} with --data") from error
    for warning in study.warnings:
        say(f"dign: warning: {warning}")
    written = []
    if figure:
        from dign.report.figures import draw_figure

        written.append(draw_figure(study, Path(figure)))
    if out is None and format_ != "html" and not as_json:
        click.echo(report_text(study, format_), nl=False)
    else:
        written += write_report(study, Path(out or "report.html"), format_)
        if not (quiet or as_json):
            console = make_table_console()
            console.print(terminal_table(summary_table(study), console.width))
    if as_json:
        print_json({"written": [str(path) for path in written], "summary": _rows(summary_table(study))})
    elif not quiet:
        for path in written:
            click.echo(f"Wrote {path}", err=True)


def _rows(table: Table) -> list[dict[str, Any]]:
    """The rows of a table by column: numbers where there are any, else the text."""
    return [
        {table.corner: row.label}
        | {
            column.label: cell.text if cell.value is None else cell.value
            for column, cell in zip(table.columns, row.cells, strict=True)
        }
        for row in table.rows
    ]


def _format_of(out: str | None) -> str:
    from dign.report.make import format_of

    if out is None or not Path(out).suffix:
        return "html"
    try:
        return format_of(out)
    except UserError as error:
        raise UserError(f"{error}, or --format") from error


def terminal_table(table: Table, width: int) -> RichTable:
    """The table for a terminal; its last columns are left out where they do not fit, and named below.

    Names are plain text, whatever marks they contain.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = list(enumerate(table.columns))
    label_width = max(len(text) for text in (table.corner, *(row.label for row in table.rows)))

    def needed(index: int, label: str) -> int:
        return 2 + max(len(label), *(len(row.cells[index].plain) for row in table.rows))

    while len(columns) > 3 and label_width + 3 + sum(needed(i, column.label) for i, column in columns) > width:
        columns.pop()
    shown = RichTable(box=box.SIMPLE_HEAD, title=Text(table.title), title_justify="left", padding=(0, 1, 0, 0))
    if left_out := [column.label for column in table.columns[len(columns) :]]:
        shown.caption = Text(f"Too narrow for: {', '.join(left_out)}")
        shown.caption_justify = "left"
    shown.add_column(Text(table.corner), no_wrap=True)
    for _, column in columns:
        shown.add_column(Text(column.label), justify="right" if column.numeric else "left")
    for section in table.sections:
        if section.heading:
            shown.add_row(Text(section.heading, style="italic"))
        for row in section.rows:
            cells = [Text(row.cells[i].plain, style="bold" if row.cells[i].best else "") for i, _ in columns]
            shown.add_row(Text(row.label), *cells)
    return shown
