"""Tables as plain data."""

import json
from dataclasses import fields

import pytest
import torch
from torch import nn

import dign
from dign.metrics.uncertainty import UncertaintyScores
from dign.report.analysis.study import make_study
from dign.report.analysis.tables import (
    corruption_table,
    corruption_uncertainty_parts,
    describe_missing_promises,
    number,
    paper_tables,
    promise_table,
    severity_table,
    signed,
    summary_table,
)
from dign.report.load import load_runs


def test_numbers_have_one_decimal_a_real_minus_and_no_negative_zero():
    assert [number(-0.04), number(-1.25), number(99.95)] == ["0.0", "−1.2", "100.0"]
    assert [signed(2.04), signed(-2.0), signed(0.01)] == ["+2.0", "−2.0", "0.0"]


def test_summary_has_a_row_per_method_and_the_best_in_bold(demo_runs):
    study = make_study(*load_runs([demo_runs]))
    table = summary_table(study)
    assert [row.label for row in table.rows] == ["Standard", "RSE", "DiGN w/o CR", "DiGN"]
    labels = [column.label for column in table.columns]
    assert "mCA ↑" not in labels  # with noise alone, mCA says what mCA-N says
    for label, pick in (("mCA-N ↑", max), ("ECE-N ↓", min)):
        cells = [row.cells[labels.index(label)] for row in table.rows]
        best = pick(cells, key=lambda cell: cell.value)
        assert [cell.best for cell in cells] == [cell.text == best.text for cell in cells]


def test_means_that_print_alike_are_both_best_and_a_lone_method_is_not(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN", 0, run={"title": "X"})
    fake_run(tmp_path / "b", "DiGN", 0, run={"title": "Y"})
    rows = summary_table(make_study(*load_runs([tmp_path]))).rows
    assert all(row.cells[1].best for row in rows)
    rows = summary_table(make_study(*load_runs([tmp_path / "a"]))).rows
    assert not any(cell.best for cell in rows[0].cells)


def test_several_seeds_have_a_spread_and_one_has_none(grid_runs, demo_runs):
    assert " ± " in summary_table(make_study(*load_runs([grid_runs]))).rows[0].cells[1].plain
    assert " ± " not in summary_table(make_study(*load_runs([demo_runs]))).rows[0].cells[1].plain


def test_per_severity_is_the_mean_over_the_three_noises(demo_runs):
    study = make_study(*load_runs([demo_runs]))
    results = json.loads((demo_runs / "dign" / "results.json").read_text())
    noises = [results["corruptions"][f"{name}_noise"] for name in ("shot", "impulse", "speckle")]
    expected = sum(noise["severities"]["4"]["accuracy"] for noise in noises) / 3
    table = severity_table(study)
    row = next(row for row in table.rows if row.label == "Severity 4")
    assert row.cells[3].value == pytest.approx(expected)


def test_per_corruption_lists_families_in_order(grid_runs):
    labels = [row.label for row in corruption_table(make_study(*load_runs([grid_runs]))).rows]
    assert labels[0] == "Clean acc." and labels[1:5] == [
        "Gaussian Noise",
        "Shot Noise",
        "Impulse Noise",
        "Speckle Noise",
    ]
    assert len(labels) == 20 and "JPEG Compression" in labels


def test_the_paper_s_tables_have_the_paper_s_rows(grid_runs):
    first, second, third = paper_tables(make_study(*load_runs([grid_runs])))
    assert [row.label for row in first.rows] == [
        "Clean acc.", "mCA-N", "Gaussian Noise", "Impulse Noise", "Shot Noise", "Speckle Noise",
    ]  # fmt: skip
    assert [row.label for row in second.rows] == [
        "Clean RMSE", "Clean ECE", "Clean OE", "Clean SH",
        "Corrupt RMSE-N", "Corrupt ECE-N", "Corrupt OE-N", "Corrupt SH-N",
    ]  # fmt: skip
    assert [row.label for row in third.rows] == [
        "Clean acc.", "mCA-N", "mCA", "Clean RMSE", "Corrupt RMSE-N", "Corrupt RMSE",
    ]  # fmt: skip


def test_promises_are_shown_for_every_corruption(fake_run, tmp_path):
    """Two of three images answered, one of ten answers wrong; the mean over severities, where one answers nothing."""
    fake_run(tmp_path / "a", "DiGN")
    file = tmp_path / "a" / "results.json"
    results = json.loads(file.read_text())
    kept = {"coverage": {"threshold": 85.0, "adaptive": 88.0}, "size": {"threshold": 1.0, "adaptive": 1.5}}
    results["clean"]["promises"] = {"answered": 66.0, "error": 10.0, **kept}
    for severity, entry in results["corruptions"]["shot_noise"]["severities"].items():
        error = None if severity == "5" else 20.0
        entry["promises"] = {"answered": 0.0 if severity == "5" else 50.0, "error": error, **kept}
    file.write_text(json.dumps(results))
    table = promise_table(make_study(*load_runs([tmp_path])))
    shown = {row.label.split(" ↑")[0].split(" ↓")[0]: row.cells[0].value for row in table.rows}
    assert shown["Clean: wrong among the answers"] == 10 and shown["Clean: true class in its set"] == 88
    assert shown["Shot Noise: wrong among the answers"] == 20 and shown["Shot Noise: answered"] == 40
    assert shown["Shot Noise: size of sets"] == 1.5

    quantiles = {"threshold": 0.8, "adaptive": 0.9}
    for entry in (results["clean"], *results["corruptions"]["shot_noise"]["severities"].values()):
        entry["promises"] = {"answered": None, "error": None, **kept}
    results["promises"] = {"images": 40, "error": 0.05, "threshold": None, "coverage": 0.9, "quantiles": quantiles}
    file.write_text(json.dumps(results))
    table = promise_table(make_study(*load_runs([tmp_path])))
    shown = {row.label.split(" ↑")[0].split(" ↓")[0]: row.cells[0].text for row in table.rows}
    assert "Clean: answered" not in shown, "not 0 %: nothing was promised"
    assert "DiGN: no error of 5 % can be promised from 40 held-out images." in table.caption


def test_models_become_sections_and_a_method_missing_on_one_is_a_dash(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN", model="one")
    fake_run(tmp_path / "b", "DiGN", model="two")
    fake_run(tmp_path / "c", "RSE", model="two")
    study = make_study(*load_runs([tmp_path]))
    assert [section.heading for section in summary_table(study).sections] == ["one", "two"]
    table = corruption_table(study)
    rse = [column.label for column in table.columns].index("RSE")
    assert table.sections[0].rows[0].cells[rse].text == "–" and table.sections[1].rows[0].cells[rse].value


def test_every_score_of_uncertainty_has_a_table_per_corruption(tmp_path):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    conditions = dign.Conditions(corruptions=["shot_noise", "fog"], severities=[1, 5])
    results = dign.evaluate(network, (torch.rand(40, 3, 8, 8), torch.arange(40) % 3), conditions)
    results.save(tmp_path / "a")
    parts = corruption_uncertainty_parts(make_study(*load_runs([tmp_path])))
    assert [part.title for part in parts[:3]] == ["NLL ↓", "Smooth ECE ↓", "AUGRC ↓"], "these are shown at once"
    assert len(parts) == len({part.title for part in parts}) == len(fields(UncertaintyScores))
    shot, fog = parts[0].rows
    severities = results.corruptions["shot_noise"].severities
    expected = (severities[1].uncertainty.nll + severities[5].uncertainty.nll) / 2
    assert (shot.label, fog.label) == ("Shot Noise", "Fog") and shot.cells[0].value == pytest.approx(expected)


def test_seeds_that_cannot_promise_are_counted_by_method(fake_run, tmp_path):
    def write(name, title, seed, images, threshold):
        fake_run(tmp_path / name, title, seed)
        file = tmp_path / name / "results.json"
        results = json.loads(file.read_text())
        quantiles = {"threshold": 0.8, "adaptive": 0.9}
        results["promises"] = {"images": images, "error": 0.1, "threshold": threshold, "coverage": 0.9}
        results["promises"]["quantiles"] = quantiles
        file.write_text(json.dumps(results))

    for seed, threshold in enumerate((0.9, None, 0.8)):
        write(f"dign-{seed}", "DiGN", seed, 5000, threshold)
    write("rse", "RSE", 0, 40, None)
    write("standard", "Standard", 0, 40, 0.9)
    text = describe_missing_promises(make_study(*load_runs([tmp_path])).groups)
    assert "DiGN: no error of 10 % can be promised from 5000 held-out images in 1 of 3 seeds. " in text
    assert "RSE: no error of 10 % can be promised from 40 held-out images. " in text and "Standard" not in text
