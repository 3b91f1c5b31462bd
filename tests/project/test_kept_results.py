"""Tables that `results/keep.py` writes say what the results files say, wherever they are quoted."""

from pathlib import Path

import keep
import pytest
from result_scripts import load_script
from result_tables import END, decide_claims, fill, mark_best

from dign.report.load import load_runs

ROOT = Path(__file__).parents[2]
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


def test_claims_about_a_setting_are_not_corrected_for_another_value_of_it():
    runs = sorted((ROOT / "results" / "claims-cifar10" / "runs").iterdir())
    published = decide_claims([run for run in runs if "weight=1.0" not in run.name])
    apart = decide_claims(runs)
    assert f"weight 0.2:\n\n{published}" in apart and "weight 1.0:\n" in apart


def test_the_best_of_a_column_is_bold_and_whatever_prints_the_same():
    assert mark_best(["81.4 ± 0.0", "50.9", "81.4", "–"], max) == ["**81.4** ± 0.0", "50.9", "**81.4**", "–"]
    assert mark_best(["0.5 ± 0.5", "2.0"], min) == ["**0.5** ± 0.5", "2.0"]
    assert mark_best(["–", "–"], max) == ["–", "–"]


def test_a_page_without_both_marks_stays_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    for text in ("no mark", "<!-- a -->\nno end", f"{END} before <!-- a -->\n"):
        page.write_text(text)
        with pytest.raises(SystemExit, match="where should the table go"):
            fill(page, {"<!-- a -->\n": "table\n"})
        assert page.read_text() == text
    page.write_text(f"<!-- a -->\nold\n{END}\nafter")
    fill(page, {"<!-- a -->\n": "new\n"})
    assert page.read_text() == f"<!-- a -->\nnew\n{END}\nafter"


def test_what_a_folder_keeps_of_a_run_it_goes_on_keeping(fake_run, tmp_path):
    run, place = fake_run(tmp_path / "run"), tmp_path / "kept"
    (run / "model.safetensors").write_bytes(b"first")
    keep.keep(run, place, weights=False, images=False)
    assert {file.name for file in place.iterdir()} == {"config.toml", "results.json", "run.json"}
    keep.keep(run, place, weights=True, images=False)
    (run / "model.safetensors").write_bytes(b"second")
    keep.keep(run, place, weights=False, images=False)
    assert (place / "model.safetensors").read_bytes() == b"second"


@pytest.mark.slow
def test_differences_that_a_page_asks_for_are_made_from_the_results():
    script = load_script(ROOT / "results" / "tiny-imagenet-20" / "differences.py")
    assert script.MARK + script.table() + END in (script.HERE / "README.md").read_text(encoding="utf-8")
