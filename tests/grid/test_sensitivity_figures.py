"""The tables and figures of a sensitivity study."""

import csv
import json

import pytest
from fake_sensitivity import GRID, accuracy, make_study, results, summary

from dign.core.errors import UserError
from dign.grid import sensitivity_figures
from dign.grid.plan import make_plan
from dign.grid.sensitivity import make_sensitivity
from dign.grid.sensitivity_figures import draw_figures, draw_sensitivity, heat_maps


@pytest.fixture
def study():
    return make_study()


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
        "mca mean": "80.0", "mca std": "1.0", "seeds": "2",
    }  # fmt: skip
    assert rows[-1]["seeds"] == "1"
    value = json.loads((folder / "sensitivity.json").read_text())
    assert value["missing_runs"] == 1
    assert value["best"] == {"by": "mca_n", "dign.sigma_max": 0.2, "dign.weight": 0.2}


def test_a_grid_without_numeric_lists_has_nothing_to_draw(tmp_path):
    plan = make_plan({"data": "digits", "seed": [0, 1], "schedule": ["step", "cosine"]})
    assert draw_sensitivity(plan, tmp_path, must=False) == []
    with pytest.raises(UserError, match="There is no sensitivity study to draw"):
        draw_sensitivity(plan, tmp_path)
