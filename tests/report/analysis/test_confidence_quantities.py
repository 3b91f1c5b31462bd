"""Calibration after temperature scaling stands beside the plain figures, where it was measured."""

import json
import shutil

import pytest

from dign.core.errors import UserError
from dign.report.make import all_tables, report_text, study_of


@pytest.fixture
def scaled_runs(demo_runs, tmp_path):
    shutil.copytree(demo_runs, tmp_path / "runs")
    for path in (tmp_path / "runs").rglob("results.json"):
        results = json.loads(path.read_text())
        pooled = results["summary"]["calibration"]
        halved = {place: scores and {**scores, "ece": scores["ece"] / 2} for place, scores in pooled.items()}
        path.write_text(json.dumps({**results, "temperature": {"value": 1.75, **halved}}))
    return tmp_path / "runs"


def test_the_table_is_there_only_where_a_temperature_was_fitted(demo_runs):
    assert not [table for table in all_tables(study_of([demo_runs])) if table.key == "temperature"]


def test_plain_and_scaled_errors_stand_side_by_side(scaled_runs):
    study = study_of([scaled_runs])
    text = report_text(study, "markdown")
    section = text[text.index("## After temperature scaling") :].split("\n## ")[0]
    rows = {line.split("|")[1].strip(): line for line in section.splitlines() if line.startswith("|")}
    assert "1.75" in rows["T"] and "**" not in rows["T"], "no temperature is better than another"
    plain, scaled = (
        [float(cell.replace("*", "").split("±")[0]) for cell in rows[name].split("|")[2:-1]]
        for name in ("Corrupt ECE-N at T = 1", "Corrupt ECE-N at T")
    )
    assert scaled == pytest.approx([value / 2 for value in plain], abs=0.1)
    assert "After temperature scaling" in report_text(study, "html")


def test_a_temperature_that_is_none_is_refused(scaled_runs):
    path = next(scaled_runs.rglob("results.json"))
    results = json.loads(path.read_text())
    results["temperature"]["value"] = "hot"
    path.write_text(json.dumps(results))
    with pytest.raises(UserError, match=r"temperature\.value"):
        study_of([path.parent])
