"""The laptop's first table says what its results files say."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from dign.evaluation.results import Results

RESULTS = Path(__file__).parents[2] / "results" / "laptop-cifar10"


def measured():
    """The title of a method to its four cells: clean accuracy, mCA-N, mCA and ECE under noise."""
    rows = defaultdict(list)
    for file in sorted(RESULTS.glob("*-seed?.json")):
        results = Results.load(file)
        rows[results.run.title].append(
            (results.clean.accuracy, results.mca_n, results.mca, results.calibration.noise.ece)
        )
    return {title: [_cell(column) for column in zip(*seeds, strict=True)] for title, seeds in rows.items()}


def _cell(values):
    return f"{fmean(values):.1f} ± {pstdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


MEASURED = measured()


@pytest.mark.parametrize("title", MEASURED)
def test_a_row_of_the_table(title):
    lines = (line.replace("*", "") for line in (RESULTS / "README.md").read_text(encoding="utf-8").splitlines())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert MEASURED[title] in [row[1:] for row in rows if row[0] == title], "beside rows of other tables"
