"""The parts of the page that show results."""

import pytest

from dign.report.html.result_sections import (
    accuracy_calibration,
    heat_maps,
    noise_figures,
    per_model,
    reliability_places,
    reliability_rows,
    small_multiples,
)
from dign.report.make import study_of


def test_a_model_has_its_name_only_where_there_are_several(fake_run, tmp_path):
    fake_run(tmp_path / "a", model="one")
    assert [part.name for part in per_model(study_of([tmp_path]), len)] == [None]
    fake_run(tmp_path / "b", model="two")
    parts = per_model(study_of([tmp_path]), lambda groups: groups[0].model if groups[0].model == "two" else None)
    assert [(part.name, part.content) for part in parts] == [("two", "two")]


def test_a_heat_map_has_the_measured_accuracies_and_a_gap_where_none_was_measured(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN")
    fake_run(tmp_path / "b", "Standard", families=("noise", "blur"))
    study = study_of([tmp_path])
    (part,) = heat_maps(study)
    standard, dign = part.content
    run = study.groups[1].runs[0]
    rows = dict(dign.rows)
    assert [cell.text for cell in rows["Shot Noise"]] == [
        f"{accuracy:.0f}" for accuracy in run.results.corruptions["shot_noise"].accuracies.values()
    ]
    assert rows["Glass Blur"] == [None] * 5 and None not in dict(standard.rows)["Glass Blur"]


@pytest.mark.slow
def test_reliability_under_all_corruptions_is_shown_where_there_is_more_than_noise(demo_runs, grid_runs):
    all_titles = ["Clean images", "Noise", "All corruptions"]
    for runs, titles in ((demo_runs, all_titles[:2]), (grid_runs, all_titles)):
        study = study_of([runs])
        assert [title for title, _, _ in reliability_places(study)] == titles
        (part,) = reliability_rows(study)
        assert all([one.title for one in row.diagrams] == titles for row in part.content)


@pytest.mark.slow
def test_charts_per_corruption_are_grouped_by_family(grid_runs):
    (part,) = small_multiples(study_of([grid_runs]))
    assert {family: len(panels) for family, panels in part.content.items()} == {
        "noise": 4, "blur": 5, "weather": 5, "digital": 5,
    }  # fmt: skip


def test_without_noise_there_is_no_scatter_and_without_corruptions_no_figure(fake_run, tmp_path):
    blur, clean = fake_run(tmp_path / "blur", families=("blur",)), fake_run(tmp_path / "clean", families=())
    assert accuracy_calibration(study_of([blur])) == [] and len(noise_figures(study_of([blur]))) == 1
    assert noise_figures(study_of([clean])) == []
