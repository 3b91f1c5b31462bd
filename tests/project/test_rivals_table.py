"""The rivals' table, wherever it is quoted, says what the results files say."""

from pathlib import Path

import pytest
from result_scripts import load_script
from result_tables import END

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "results" / "rivals-cifar10"

MAKE = load_script(FOLDER / "make.py")
ROWS = dict(MAKE.rows())
PAGES = {runs[0].run.method: title for title, runs in ROWS.items() if not title.endswith(MAKE.VARIANTS)}


def test_the_table_is_made_from_the_results_files():
    assert len(ROWS) >= 4
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert MAKE.START + MAKE.table() + END in text
    assert MAKE.PROMISES_START + MAKE.promises() + END in text
    assert set(MAKE.PAPER) <= set(ROWS)
    methods = (ROOT / "docs" / "methods" / "index.md").read_text(encoding="utf-8")
    assert MAKE.METHODS_START + MAKE.list_methods() + END in methods
    assert MAKE.PAPER_START + MAKE.paper_table() + END in text


def test_all_were_measured_alike():
    """On the same images, under the same corruptions, in the same precision."""
    circumstances, digests = set(), set()
    for runs in ROWS.values():
        for results in runs:
            how = results.evaluation
            names = tuple(sorted(results.corruptions))
            circumstances.add((how.images, how.precision, how.seed, how.frost, how.split, names))
            if results.run.method != "ensemble":  # whose results have no digest
                digests.add(how.images_sha256)
    assert len(circumstances) == 1 and len(digests) == 1 and None not in digests


@pytest.mark.parametrize("method", PAGES)
def test_the_page_of_a_method_that_has_its_numbers_here(method):
    page = ROOT / "docs" / "methods" / f"{method.replace('+', '-')}.md"
    if not page.exists():
        pytest.skip("a sum, which has no page")
    clean, noise, corrupted, c_bar, error, *_ = MAKE.cells(ROWS[PAGES[method]])
    line = f"\n{clean} % clean, {noise} % mCA-N, {corrupted} % mCA, {c_bar} % C-bar; ECE under noise {error} %\n"
    assert line in page.read_text(encoding="utf-8")
