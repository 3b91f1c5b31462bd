"""Differences between methods."""

import pytest

from dign.report.analysis.comparisons import comparison_table, difference_table
from dign.report.make import study_of


def test_differences_name_the_best_and_say_when_seeds_are_too_few(grid_runs, demo_runs):
    few = difference_table(study_of([demo_runs]))
    assert few.sections[0].heading.startswith("DiGN (") and len(few.rows) == 3
    assert all(cell.text.endswith("too few seeds") for row in few.rows for cell in row.cells)
    many = difference_table(study_of([grid_runs]))
    standard = many.rows[0].cells[1].text
    assert standard.startswith("+") and "[" in standard and "p " in standard


def test_two_groups_are_compared_in_everything(fake_run, tmp_path):
    fake_run(tmp_path / "a", "Standard")
    fake_run(tmp_path / "b", "DiGN")
    table = comparison_table(study_of([tmp_path]))
    row = next(row for row in table.rows if row.label.startswith("mCA-N"))
    assert row.cells[2].value == pytest.approx(row.cells[1].value - row.cells[0].value)
    assert (row.cells[0].best, row.cells[1].best) == (False, True)
    assert comparison_table(study_of([tmp_path / "a"])) is None
