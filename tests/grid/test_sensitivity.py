"""The sensitivity study: points, reference, tables and figures from summaries made by hand."""

import csv
import json
import math
from dataclasses import replace

import pytest

from dign.core.errors import UserError
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_parts import PooledCalibration, Summary
from dign.evaluation.summarize import CLEAN, make_results
from dign.grid import sensitivity_figures
from dign.grid.plan import make_plan
from dign.grid.sensitivity import make_sensitivity, studies_of
from dign.grid.sensitivity_figures import draw_figures, draw_sensitivity, heat_maps
from dign.metrics import Calibration, CalibrationScores

GRID = {
    "data": "cifar10",
    "seed": [0, 1],
    "settings": {"dign": {"sigma_max": [0.1, 0.2], "weight": [0.2, 1.0, 5.0]}},
}


def summary(mca_n, clean=90.0, ece=4.0):
    scores = CalibrationScores(10, clean, ece, ece, ece, None)
    return Summary(clean, mca_n, mca_n, {"noise": mca_n}, PooledCalibration(scores, noise=scores))


def results(run, summary):
    """Results with ten predictions under every condition, of which nine are right, and any summary."""
    calibration = Calibration.from_state({"counts": [10], "correct": [9], "deviation": [0.0], "square": [0.0]})
    counts = {CLEAN: calibration}
    counts |= {(name, severity): calibration for name in run.evaluation.corruptions for severity in range(1, 6)}
    about = RunInfo(run.name, "dign", "DiGN", "resnet18", "cifar10", run.config.seed)
    how = EvaluationInfo("test", 10, (32, 32), "cifar", 0, bins=1)
    return replace(make_results(counts, about, how, ["a", "b"]), summary=summary)


def accuracy(run):
    """80 at sigma_max 0.1, 90 at 0.2, less 1 for each weight above 0.2, plus or minus 1 for the seed."""
    settings = run.config.settings["dign"]
    base = 80 if settings["sigma_max"] == 0.1 else 90
    return base - [0.2, 1.0, 5.0].index(settings["weight"]) + (1 if run.config.seed else -1)


@pytest.fixture
def study():
    plan = make_plan(GRID)
    return make_sensitivity("cifar10, resnet18, dign", [(run, summary(accuracy(run))) for run in plan.runs])


def test_points_are_means_and_population_deviations_over_seeds(study):
    point = study.at(**{"dign.sigma_max": 0.1, "dign.weight": 1.0})
    assert point.by_seed["mca_n"] == {0: 78, 1: 80}
    assert point.mean("mca_n") == 79 and point.std("mca_n") == 1
    assert math.isnan(point.mean("mca")), "of noise alone mCA is mCA-N again"
    assert study.best.values == (0.2, 0.2)
    assert len(study.points) == 6


def test_what_is_not_varied_stays_at_its_published_value(study):
    assert study.reference == {"dign.sigma_max": 0.2, "dign.weight": 0.2}
    tiny = make_plan({**GRID, "data": "tiny-imagenet"})
    runs = [(run, summary(accuracy(run))) for run in tiny.runs]
    assert make_sensitivity("tiny", runs).reference["dign.sigma_max"] == 0.2, "0.6 is published, but was not run"


@pytest.mark.slow
def test_figures_are_written_and_repeat_themselves(study, tmp_path):
    names = {path.name for path in draw_figures(study, tmp_path / "a")}
    assert names == {f"{figure}.{kind}" for figure in ("curves", "heat-sigma_max-weight") for kind in ("png", "svg")}
    draw_figures(study, tmp_path / "b")
    assert (tmp_path / "a" / "curves.png").read_bytes() == (tmp_path / "b" / "curves.png").read_bytes()


def test_a_heat_map_has_the_numbers_in_its_cells(study):
    (axes, *_) = heat_maps(study, "dign.sigma_max", "dign.weight").axes
    assert axes.images[0].get_array().tolist() == [[80, 79, 78], [90, 89, 88]]
    assert [text.get_text() for text in axes.texts] == ["80.0", "79.0", "78.0", "90.0", "89.0", "88.0"]


@pytest.mark.slow
def test_three_settings_give_three_pairs_and_a_panel_per_third_value(tmp_path, monkeypatch):
    plan = make_plan({**GRID, "seed": 0, "settings": {"dign": {**GRID["settings"]["dign"], "samples": [1, 3]}}})
    done = [(run, summary(accuracy(run) + run.config.settings["dign"]["samples"])) for run in plan.runs]
    study = make_sensitivity("x", done[:-1], missing=1)
    assert len(heat_maps(study, "dign.sigma_max", "dign.weight").axes) == 3 * 2, "three measures, two values of n"
    monkeypatch.setattr(sensitivity_figures, "_save", lambda figure, folder, name: [name])
    assert draw_figures(study, tmp_path) == [
        "curves", "heat-sigma_max-weight", "heat-sigma_max-samples", "heat-weight-samples",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_study_is_drawn_from_what_is_done(tmp_path, monkeypatch):
    plan = make_plan({**GRID, "method": ["standard", "dign"]})
    done = [run for run in plan.runs if run.config.method == "dign"][:-1]
    for run in done:
        folder = tmp_path / run.name
        folder.mkdir()
        (folder / "config.toml").write_text(run.config.to_toml())
        (folder / "model.safetensors").touch()
        results(run, summary(accuracy(run))).save(folder)
    places = draw_sensitivity(plan, tmp_path)
    folder = tmp_path / "sensitivity" / "cifar10-resnet18-dign"
    assert {str(folder / "curves.svg"), str(folder / "sensitivity.csv")} <= set(places)
    rows = list(csv.DictReader(open(folder / "sensitivity.csv")))  # noqa: SIM115
    assert rows[0] == {
        "dign.sigma_max": "0.1", "dign.weight": "0.2", "mca_n mean": "80.0", "mca_n std": "1.0",
        "clean_accuracy mean": "90.0", "clean_accuracy std": "0.0", "ece_n mean": "4.0", "ece_n std": "0.0",
        "seeds": "2",
    }  # fmt: skip
    assert rows[-1]["seeds"] == "1"
    value = json.loads((folder / "sensitivity.json").read_text())
    assert value["missing_runs"] == 1
    assert value["best"] == {"by": "mca_n", "dign.sigma_max": 0.2, "dign.weight": 0.2}


def test_a_grid_without_numeric_lists_is_no_study(tmp_path):
    plan = make_plan({"data": "digits", "seed": [0, 1], "schedule": ["step", "cosine"]})
    assert studies_of(plan, tmp_path) == []
    assert draw_sensitivity(plan, tmp_path, must=False) == []
    with pytest.raises(UserError, match="There is no sensitivity study to draw"):
        draw_sensitivity(plan, tmp_path)
