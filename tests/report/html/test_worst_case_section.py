"""Attacks and certificates on the page: what is read, what is drawn, and that broken files are left out."""

import json

import pytest

from dign.report.html.page import build_page
from dign.report.html.worst_case_section import attack_table, certificate_parts, read_attacked, read_certified
from dign.report.load import load_run
from dign.report.make import study_of

ATTACK = {"kind": "apgd", "norm": "linf", "eps": 8 / 255, "steps": 20, "restarts": 1, "seed": 0}


@pytest.fixture
def measured(fake_run, tmp_path):
    """A run folder with an attack and certificates at sigma 0.25: three images of four right."""

    def make(title, seed, robust=40.0, attacks=(0.7, None, 0.4)):
        folder = fake_run(tmp_path / f"{title}-{seed}", title, seed)
        entry = {"attack": ATTACK, "images": 100, "split": "test", "accuracy": 90.0, "robust_accuracy": robust}
        (folder / "attacks.json").write_text(json.dumps({"schema": 1, "attacks": [entry]}))
        rows = [
            {"correct": True, "radius": radius, "attack": norm}
            for radius, norm in zip((0.6, 0.5, 0.1), attacks, strict=True)
        ]
        content = {"plan": {"sigma": 0.25}, "rows": [*rows, {"correct": False, "radius": 0.9, "attack": None}]}
        (folder / "certificates-0.25.json").write_text(json.dumps(content))
        return folder

    make.folder = tmp_path
    return make


def test_files_are_read(measured):
    run = load_run(measured("DiGN", 0))
    (attacked,), (certified,) = read_attacked(run), read_certified(run)
    assert attacked.title == "APGD linf 8/255, 20 steps, 100 images"
    assert (attacked.clean, attacked.robust) == (90, 40)
    assert [certified.accuracy(radius) for radius in (0, 0.5, 0.6, 0.61)] == [75, 50, 25, 0]
    assert [certified.accuracy_under_attack(radius) for radius in (0, 0.5, 0.8)] == [75, 50, 25]
    assert certified.average_radius == pytest.approx(1.2 / 4)


def test_attacks_that_differ_have_columns_of_their_own(measured):
    folder = measured("DiGN", 0)
    entry = json.loads((folder / "attacks.json").read_text())["attacks"][0]
    others = [
        {**entry, "attack": {**ATTACK, "restarts": 5}},
        {**entry, "attack": {**ATTACK, "seed": 1}},
        {**entry, "split": "validation"},
    ]
    (folder / "attacks.json").write_text(json.dumps({"schema": 1, "attacks": [entry, *others]}))
    assert [one.title.removeprefix("APGD linf 8/255, 20 steps, ") for one in read_attacked(load_run(folder))] == [
        "100 images", "restarts 5, 100 images", "seed 1, 100 images", "100 validation images",
    ]  # fmt: skip


def test_seeds_are_averaged_in_the_tables(measured):
    measured("DiGN", 0, 40)
    measured("DiGN", 1, 50)
    measured("Standard", 0, 0)
    study = study_of([measured.folder])
    rows = {row.label: [cell.plain for cell in row.cells] for row in attack_table(study).rows}
    assert rows == {"Standard": ["90.0", "0.0"], "DiGN": ["90.0 ± 0.0", "45.0 ± 5.0"]}
    (part,) = certificate_parts(study)
    (at_sigma,) = part.content
    assert at_sigma["sigma"] == "0.25" and at_sigma["attacked"]
    assert [column.label for column in at_sigma["table"].columns] == ["0", "0.25", "0.5", "Average radius"]


def test_the_page_has_a_tab_of_its_own_only_where_there_is_something(measured, fake_run):
    page = build_page(study_of([measured("DiGN", 0)]))
    assert "Worst case" in page and "Accuracy under attack" in page and "Certified accuracy" in page
    assert "Worst case" not in build_page(study_of([fake_run(measured.folder / "plain", "DiGN", 0)]))


@pytest.mark.parametrize(
    "content",
    [
        "x",
        "[]",
        "{}",
        '{"rows": [], "plan": {"sigma": 1}}',
        '{"rows": [1], "plan": {"sigma": 1}}',
        '{"rows": [{"correct": true}], "plan": {"sigma": 1}}',
        '{"rows": [{"correct": true, "radius": "x"}], "plan": {"sigma": 1}}',
    ],
)
def test_broken_files_are_left_out(measured, content):
    folder = measured("DiGN", 0)
    (folder / "certificates-0.25.json").write_text(content)
    (folder / "attacks.json").write_text(content.replace("rows", "attacks"))
    run = load_run(folder)
    assert read_certified(run) == [] and read_attacked(run) == []
    build_page(study_of([folder]))
