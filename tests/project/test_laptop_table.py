"""The laptop's table, wherever it is quoted, says what the results files say."""

from collections import defaultdict
from pathlib import Path
from statistics import fmean, pstdev

import pytest

from dign.evaluation.results import Results

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "laptop-cifar10"


def measured():
    """Title and page of a method to its four cells: clean accuracy, mCA-N, mCA and ECE under noise."""
    rows = defaultdict(list)
    for file in sorted(RESULTS.glob("*-seed?.json")):
        results = Results.load(file)
        method = results.run.title, results.run.method.replace("+", "-")
        rows[method].append((results.clean.accuracy, results.mca_n, results.mca, results.calibration.noise.ece))
    return {method: [_cell(column) for column in zip(*seeds, strict=True)] for method, seeds in rows.items()}


def _cell(values):
    return f"{fmean(values):.1f} ± {pstdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


MEASURED = measured()


@pytest.mark.parametrize(("title", "page"), MEASURED)
@pytest.mark.parametrize("file", ["README.md", "results/laptop-cifar10/README.md"])
def test_a_row_of_the_table(file, title, page):
    names = {title, title.replace("w/o CR", "without consistency"), title.replace("+", " + ")}
    lines = (line.replace("*", "") for line in (ROOT / file).read_text(encoding="utf-8").splitlines())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert MEASURED[title, page] in [row[1:] for row in rows if row[0] in names], "beside rows of other tables"


@pytest.mark.parametrize(("title", "page"), MEASURED)
def test_the_page_of_a_method(title, page):
    clean, noise, corrupted, error = MEASURED[title, page]
    text = (ROOT / "docs" / "methods" / f"{page}.md").read_text(encoding="utf-8")
    assert f"\n{clean} % clean, {noise} % mCA-N, {corrupted} % mCA; ECE under noise {error} %\n" in text
