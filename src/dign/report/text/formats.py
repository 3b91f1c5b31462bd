"""Tables as Markdown, CSV and LaTeX; names from files are escaped for each of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from dign.report.analysis.tables import MINUS, Cell, Table

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': "''", "±": r"$\pm$", "−": "$-$", "–": "--", "—": "---", "…": r"\dots{}",
    "↑": r"$\uparrow$", "↓": r"$\downarrow$", "λ": r"$\lambda$", "σ": r"$\sigma$", "×": r"$\times$",
}  # fmt: skip


def to_markdown(tables: Sequence[Table]) -> str:
    return "\n".join(map(_markdown_table, tables))


def _markdown_table(table: Table) -> str:
    header = [table.corner, *(column.label for column in table.columns)]
    lines = [f"## {_markdown(table.title)}", "", _markdown(table.caption), ""]
    lines += [_markdown_row(map(_markdown, header))]
    lines += [_markdown_row(["---", *("---:" if column.numeric else "---" for column in table.columns)])]
    for section in table.sections:
        if section.heading:
            lines.append(_markdown_row([f"*{_markdown(section.heading)}*", *([""] * len(table.columns))]))
        for row in section.rows:
            lines.append(_markdown_row([_markdown(row.label), *map(_markdown_cell, row.cells)]))
    return "\n".join(lines) + "\n"


def _markdown_row(values: Iterable[str]) -> str:
    return f"| {' | '.join(values)} |"


def _markdown_cell(cell: Cell) -> str:
    text = _markdown(cell.text)
    text = f"**{text}**" if cell.best else text
    return text if cell.std is None else f"{text} ± {cell.spread}"


def _markdown(text: str) -> str:
    text = text.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for char in "|*_`[]#":
        text = text.replace(char, "\\" + char)
    return text


def to_csv(tables: Sequence[Table]) -> str:
    """All tables in one long table, one line per number: what a spreadsheet or pandas reads at once."""
    lines: list[list[object]] = [["table", "section", "row", "column", "text", "value", "std", "seeds", "best"]]
    for table in tables:
        for section in table.sections:
            for row in section.rows:
                for column, cell in zip(table.columns, row.cells, strict=True):
                    place = [table.key, _csv(section.heading or ""), _csv(row.label), _csv(column.label)]
                    spread = "" if cell.std is None else repr(cell.std)
                    value = "" if cell.value is None else repr(cell.value)
                    lines.append([*place, _csv_cell(cell), value, spread, cell.count or "", int(cell.best)])
    return _csv_text(lines)


def to_csv_layout(table: Table) -> str:
    """One table as it is laid out on paper."""
    lines: list[list[object]] = [[_csv(table.corner), *(_csv(column.label) for column in table.columns)]]
    for section in table.sections:
        if section.heading:
            lines.append([_csv(section.heading), *([""] * len(table.columns))])
        lines += [[_csv(row.label), *map(_csv_cell, row.cells)] for row in section.rows]
    return _csv_text(lines)


def _csv_text(lines: list[list[object]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(lines)
    return buffer.getvalue()


def _csv_cell(cell: Cell) -> str:
    return cell.plain.replace(MINUS, "-") if cell.value is not None else _csv(cell.text)


def _csv(text: str) -> str:
    """A name that a spreadsheet would take for a formula gets an apostrophe."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def to_latex(tables: Sequence[Table]) -> str:
    r"""Tables that need no package, to be compiled as they are or read with \input.

    LaTeX gives \documentclass and \usepackage the same meaning (an error) after \begin{document}: by that the
    file knows whether it is read inside a document, and brings its own document only where it is not.
    """
    own = r"\ifx\documentclass\usepackage\else\def\dignalone{}\documentclass[10pt]{article}"
    own += "\n" + r"\textwidth=19cm\oddsidemargin=-1.5cm\textheight=24cm\topmargin=-1.5cm\begin{document}\fi"
    end = r"\ifx\dignalone\undefined\else\end{document}\fi"
    return "\n".join(["% Compile as it is, or \\input it.", own, *map(_latex_table, tables), end]) + "\n"


def _latex_table(table: Table) -> str:
    width = len(table.columns) + 1
    head = [f"\\textbf{{{_latex(text)}}}" for text in (table.corner, *(column.label for column in table.columns))]
    alignment = "p{4.5cm}" if table.wide_labels else "l"
    alignment += "".join("c" if column.numeric else "p{4.3cm}" for column in table.columns)
    lines = [
        r"\begin{table}[htbp]\centering",
        f"\\caption{{{_latex(table.title)}. {_latex(table.caption)}}}",
        r"\scriptsize\setlength\tabcolsep{2pt}",
        f"\\begin{{tabular}}{{{alignment}}}",
        r"\hline",
        " & ".join(head) + r" \\ \hline",
    ]
    for section in table.sections:
        if section.heading:
            lines.append(f"\\multicolumn{{{width}}}{{c}}{{\\textbf{{{_latex(section.heading)}}}}} \\\\")
        lines += [" & ".join([_latex(row.label), *map(_latex_cell, row.cells)]) + r" \\" for row in section.rows]
        lines.append(r"\hline")
    return "\n".join([*lines, r"\end{tabular}", f"\\label{{tab:{table.key}}}", r"\end{table}", ""])


def _latex_cell(cell: Cell) -> str:
    text = _latex(cell.text)
    text = f"\\textbf{{{text}}}" if cell.best else text
    return text if cell.std is None else f"{text}$\\pm${cell.spread}"


def _latex(text: str) -> str:
    """Escape; a character that plain LaTeX has no glyph for is shown as its number."""
    return "".join(_LATEX.get(char) or (char if " " <= char <= "~" else f"[U+{ord(char):04X}]") for char in text)


WRITERS: dict[str, Callable[[Sequence[Table]], str]] = {
    "markdown": to_markdown,
    "csv": to_csv,
    "latex": to_latex,
}
