"""Outliers on the page: what is read, what the table shows, and that broken files are left out."""

import json

from dign.report.analysis.outlier_table import outlier_table, read_told
from dign.report.html.page import build_page
from dign.report.load import load_run
from dign.report.make import study_of


def told(folder, auroc, name="noise", **other):
    scores = {score: {"auroc": auroc, "aupr": 90.0, "fpr95": 20.0} for score in ("softmax", "entropy", "energy")}
    content = {"outliers": name, "images": 10, "others": 12, "scores": scores, **other}
    (folder / f"ood-{name}.json").write_text(json.dumps(content))


def test_seeds_are_averaged_and_every_kind_has_a_section(fake_run, tmp_path):
    for seed, auroc in ((0, 80.0), (1, 90.0)):
        told(fake_run(tmp_path / f"DiGN-{seed}", "DiGN", seed), auroc)
    folder = fake_run(tmp_path / "Standard-0", "Standard", 0)
    told(folder, 60.0)
    told(folder, 70.0, "digits")
    study = study_of([tmp_path])
    table = outlier_table(study)
    assert [section.heading for section in table.sections] == ["digits (12 images)", "noise (12 images)"]
    rows = {row.label: row.cells[0].plain for row in table.sections[1].rows}
    assert rows == {"Standard": "60.0", "DiGN": "85.0 ± 5.0"}
    best = [[cell.best for cell in row.cells[:2]] for row in table.sections[1].rows]
    assert best == [[False, True], [True, True]], "the higher AUROC, and the same FPR95"
    assert not any(cell.best for row in table.sections[0].rows for cell in row.cells), "nobody to compete with"
    assert "Out of distribution" in build_page(study) and 'id="unsure"' in build_page(study)


def test_broken_files_are_left_out(fake_run, tmp_path):
    folder = fake_run(tmp_path / "run", "DiGN", 0)
    told(folder, 120.0)
    told(folder, 50.0, "others", others="many")
    (folder / "ood-list.json").write_text("[1]")
    notes = []
    run = load_run(folder, notes)
    assert read_told(run) == [] and outlier_table(study_of([folder])) is None
    assert len(notes) == 1 and "ood-list.json" in notes[0]
