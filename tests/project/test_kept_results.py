"""Tables that `results/keep.py` writes say what the results files say, wherever they are quoted."""

import keep
import pytest
from result_tables import END

from dign.report.load import load_runs

ROOT = keep.Path(__file__).parents[2]
FOLDERS = sorted(folder.parent for folder in (ROOT / "results").glob("*/runs"))
QUOTED = [
    (folder, page)
    for folder in FOLDERS
    for page in (folder / "README.md", ROOT / "README.md")
    if keep.mark(folder) in page.read_text(encoding="utf-8")
]


def test_every_folder_has_its_table():
    assert {folder for folder, _ in QUOTED} == set(FOLDERS)


@pytest.mark.parametrize(("folder", "page"), QUOTED, ids=lambda path: path.name)
def test_a_table_is_made_from_the_results(folder, page):
    assert keep.mark(folder) + keep.short_table(folder) + END in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_runs_of_a_folder_were_measured_alike(folder):
    """On the same images, under the same corruptions, in the same precision."""
    ways = set()
    for run in load_runs([folder / "runs"])[0]:
        how = run.results.evaluation
        names = tuple(sorted(run.results.corruptions))
        ways.add((how.images, how.images_sha256, how.precision, how.seed, how.frost, how.split, how.profile, names))
    assert len(ways) == 1
