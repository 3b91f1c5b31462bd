"""Tables as Markdown, CSV and LaTeX: whatever a name contains, it stays a name."""

import csv
import io
import shutil
import subprocess

import pytest

from dign.report.analysis.study import make_study
from dign.report.analysis.tables import Cell, Column, Row, Section, Table
from dign.report.load import load_runs
from dign.report.make import all_tables
from dign.report.text.formats import to_csv, to_csv_layout, to_latex, to_markdown

NASTY = r"50%_of $x$ & <script>alert(1)</script> \input{x} #~^{}|*`[a](b) 中 =1+1"


def table_with(label, *cells, columns=("A",)):
    return Table(
        "key", "Title", "Caption", "Corner", tuple(map(Column, columns)), (Section(None, (Row(label, cells),)),)
    )


def test_markdown_escapes_and_marks_the_best():
    text = to_markdown([table_with(NASTY, Cell("91.5", 91.5, 0.2, 3, True))])
    line = text.splitlines()[-1]
    assert "<script>" not in text and "&lt;script&gt;" in line
    assert line.endswith("| **91.5** ± 0.2 |")
    assert line.replace("\\|", "").count("|") == 3  # the nasty bar did not make a new column


def test_csv_is_read_back_with_all_digits_and_no_formulas():
    table = table_with("=HYPERLINK(1)", Cell("91.5", 91.54321, 0.25, 3, True))
    (row,) = csv.DictReader(io.StringIO(to_csv([table])))
    assert row["row"] == "'=HYPERLINK(1)" and float(row["value"]) == 91.54321 and row["best"] == "1"
    assert list(csv.reader(io.StringIO(to_csv_layout(table)))) == [["Corner", "A"], ["'=HYPERLINK(1)", "91.5 ± 0.2"]]


def test_a_negative_number_in_csv_is_a_number():
    text = to_csv_layout(table_with("a", Cell("−1.5", -1.5)))
    assert text.splitlines()[1] == "a,-1.5"


def test_latex_is_plain_ascii_and_every_special_character_is_escaped():
    text = to_latex([table_with(NASTY, Cell("91.5", 91.5, 0.2, 3, True))])
    assert text.isascii() and r"\textbf{91.5}$\pm$0.2" in text
    assert r"50\%\_of \$x\$ \& \textless{}script" in text and r"\textbackslash{}input\{x\}" in text
    assert "[U+4E2D]" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex to compile the tables")
@pytest.mark.parametrize("wrapped", [False, True])
def test_latex_compiles_alone_and_inside_a_document(grid_runs, tmp_path, wrapped):
    study = make_study(*load_runs([grid_runs]))
    nasty = table_with(NASTY, Cell("1.0", 1.0))
    (tmp_path / "tables.tex").write_text(to_latex([*all_tables(study), nasty]))
    (tmp_path / "paper.tex").write_text(r"\documentclass{article}\begin{document}\input{tables}\end{document}")
    name = "paper.tex" if wrapped else "tables.tex"
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]
    assert (tmp_path / name).with_suffix(".pdf").stat().st_size > 10_000
