"""Sequences on the page: what is read, what the table shows, and that broken files are left out."""

import json

import pytest

from dign.report.html.page import build_page
from dign.report.html.sequences_section import Stable, read_stable, sequence_tables
from dign.report.load import load_run
from dign.report.make import study_of


def measured(folder, **flips):
    sequences = {name: {"flip_probability": value, "top5_distance": 1.5} for name, value in flips.items()}
    (folder / "sequences.json").write_text(json.dumps({"schema": 1, "sequences": sequences, "images": 10}))


def test_seeds_are_averaged_and_only_complete_runs_have_a_mean(fake_run, tmp_path):
    for seed in (0, 1):
        measured(fake_run(tmp_path / f"DiGN-{seed}", "DiGN", seed), motion_blur=1.0 + 2 * seed, tilt=4.0)
    measured(fake_run(tmp_path / "Standard-0", "Standard", 0), tilt=6.0)
    study = study_of([tmp_path])
    flips, distances = sequence_tables(study)
    assert [column.label for column in flips.columns] == ["Standard", "DiGN"]
    assert {row.label: [cell.plain for cell in row.cells] for row in flips.rows} == {
        "Tilt": ["6.00", "4.00 ± 0.00"],
        "Motion Blur": ["–", "2.00 ± 1.00"],
        "Mean": ["–", "3.00 ± 0.50"],
    }
    assert [cell.best for row in flips.rows for cell in row.cells] == [False, True, False, False, False, False]
    assert [cell.text for cell in distances.rows[0].cells] == ["1.500", "1.500"]
    assert 'id="sequences"' in build_page(study)


@pytest.mark.parametrize(
    "content", [{}, {"sequences": [1]}, {"sequences": {"tilt": {"flip_probability": 300, "top5_distance": 1}}}]
)
def test_entries_that_make_no_sense_are_left_out(fake_run, tmp_path, content):
    folder = fake_run(tmp_path / "run", "DiGN", 0)
    (folder / "sequences.json").write_text(json.dumps(content))
    assert read_stable(load_run(folder)) == {} and sequence_tables(study_of([folder])) == []
    measured(folder, tilt=1.0)
    assert read_stable(load_run(folder)) == {"tilt": Stable(1.0, 1.5)}


def test_a_file_that_cannot_be_read_is_named(fake_run, tmp_path):
    folder = fake_run(tmp_path / "run", "DiGN", 0)
    (folder / "sequences.json").write_text("[1]")
    notes = []
    assert load_run(folder, notes).sequences is None
    assert len(notes) == 1 and "sequences.json" in notes[0]
