"""The table of the photographs, wherever it is quoted, says what the results files say."""

from pathlib import Path

import pytest

from dign.evaluation.results import Results

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "results" / "photos").glob("*-seed0.json"))


def cells_of(page, title):
    lines = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    start = next(number for number, line in enumerate(lines) if "training, minutes of one core" in line)
    rows = (line for line in lines[start:] if line.split("|")[1].strip() == title)
    return [cell.strip().strip("*") for cell in next(rows).split("|")[2:6]]


@pytest.mark.parametrize("page", ["README.md", "results/photos/README.md"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_row_is_what_was_measured(page, file):
    results = Results.load(file)
    expected = (results.clean.accuracy, results.mca_n, results.mca, results.calibration.noise.ece)
    assert cells_of(page, results.run.title) == [f"{value:.1f}" for value in expected]
    assert results.complete and results.evaluation.images == results.evaluation.limit == 100
