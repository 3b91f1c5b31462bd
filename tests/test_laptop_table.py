"""The laptop's table, wherever it is quoted, says what the results files say."""

import json
from collections import defaultdict
from pathlib import Path
from statistics import fmean, pstdev

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "laptop-cifar10"
PAGES = {"Standard": "standard", "AugMix": "augmix", "DiGN w/o CR": "dign-without-cr", "DiGN": "dign"} | {
    "AT": "at", "TRADES": "trades", "RSE": "rse", "DeepAugment": "deepaugment", "AugMax": "augmax",
    "DiGN+AugMix": "dign-augmix",
}  # fmt: skip


def measured():
    """Method to its four cells: clean accuracy, mCA-N, mCA and ECE under noise."""
    rows = defaultdict(list)
    for file in sorted(RESULTS.glob("*-seed?.json")):
        results = json.loads(file.read_text())
        summary = results["summary"]
        noisy = summary["calibration"]["noise"]["ece"]
        rows[results["run"]["title"]].append((summary["clean_accuracy"], summary["mca_n"], summary["mca"], noisy))
    return {title: [_cell(column) for column in zip(*seeds, strict=True)] for title, seeds in rows.items()}


def _cell(values):
    return f"{fmean(values):.1f} ± {pstdev(values):.1f}" if len(values) > 1 else f"{values[0]:.1f}"


MEASURED = measured()


@pytest.mark.parametrize("title", MEASURED)
@pytest.mark.parametrize("file", ["README.md", "results/laptop-cifar10/README.md"])
def test_a_row_of_the_table(file, title):
    names = {title, title.replace("w/o CR", "without consistency"), title.replace("+", " + ")}
    lines = (line.replace("*", "") for line in (ROOT / file).read_text(encoding="utf-8").splitlines())
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert [row[1:] for row in rows if row[0] in names] == [MEASURED[title]]


@pytest.mark.parametrize("title", MEASURED)
def test_the_page_of_a_method(title):
    clean, noise, corrupted, error = MEASURED[title]
    page = (ROOT / "docs" / "methods" / f"{PAGES[title]}.md").read_text(encoding="utf-8")
    assert f"\n{clean} % clean, {noise} % mCA-N, {corrupted} % mCA; ECE under noise {error} %\n" in page
