"""The table of the photographs, wherever it is quoted, says what the results files say."""

from collections import defaultdict
from pathlib import Path
from statistics import mean, pstdev

import pytest

from dign.evaluation.results import Results
from dign.metrics.aggregation import MCA_CORRUPTIONS

ROOT = Path(__file__).parents[2]
RUNS = defaultdict(list)
for file in sorted((ROOT / "results" / "photos").glob("*-seed?.json")):
    found = Results.load(file)
    RUNS[found.run.title].append(found)


def read_table(page):
    lines = [line for line in (ROOT / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    start = max(number for number, line in enumerate(lines) if "training, minutes of one core" in line)
    rows = [[cell.strip().replace("*", "") for cell in line.split("|")[1:-1]] for line in lines[start:]]
    return rows[0], {row[0]: row[1:5] for row in rows[2 : 2 + len(RUNS)]}


def show(values):
    spread = f" ± {pstdev(values):.1f}" if len(values) > 1 else ""
    return f"{mean(values):.1f}{spread}"


@pytest.mark.parametrize("page", ["README.md", "results/photos/README.md"])
def test_a_row_is_what_was_measured(page):
    heading, rows = read_table(page)
    assert set(rows) == set(RUNS)
    for title, runs in RUNS.items():
        scores = [(run.clean.accuracy, run.mca_n, run.mca, run.calibration.noise.ece) for run in runs]
        assert rows[title] == [show(values) for values in zip(*scores, strict=True)]
    complete = all(run.complete for runs in RUNS.values() for run in runs)
    assert any("mCA" in cell for cell in heading) == complete


def test_all_were_measured_on_the_same_images_under_all_corruptions():
    runs = [run for each in RUNS.values() for run in each]
    assert len({(run.evaluation.images_sha256, run.evaluation.images, run.evaluation.limit) for run in runs}) == 1
    assert all(set(MCA_CORRUPTIONS) <= set(run.corruptions) for run in runs)
    assert all(sorted(run.run.seed for run in each) == list(range(len(each))) for each in RUNS.values())
