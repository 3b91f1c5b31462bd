"""The lines, bands and labels of the landscape's figures."""

import pytest
import torch

from dign.landscape.figures import landscape_figure, line_looks


def test_runs_that_a_grid_named_by_their_seed_are_one_line() -> None:
    named = [("Standard", "a-seed0"), ("Standard", "a-seed1"), ("Other", "c-seed0")]
    looks = line_looks([{"title": title, "name": name} for title, name in named])
    assert [look["label"] for look in looks] == ["Standard (a, 2 runs)", None, "Other (c-seed0)"]


def test_bands_are_95_percent_of_the_mean_and_lines_keep_their_method() -> None:
    named = [("DiGN", "a-0"), ("DiGN", "a-1"), ("DiGN", "b"), ("Other", "c")]
    models = [{"title": title, "name": name} for title, name in named]
    looks = line_looks(models)
    assert [look["label"] for look in looks] == ["DiGN (a, 2 runs)", None, "DiGN (b)", "Other (c)"]
    assert looks[0]["color"] == looks[1]["color"]
    assert len({look["color"] for look in looks}) == 3
    panel = {"mean": [1.0, 2.0], "standard_error": [0.1, 0.2], "median": [1.0, 2.0]}
    panels = dict.fromkeys(("loss_difference", "accuracy", "first_order", "second_order"), panel)
    figure = landscape_figure({"settings": {"radii": [2.0, 1.0]}, "models": [{**models[0], "panels": panels}]})
    line = figure.axes[0].lines[0]
    assert line.get_xdata().tolist() == [1.0, 2.0] and line.get_ydata().tolist() == [2.0, 1.0]
    corners = torch.tensor(figure.axes[0].collections[0].get_paths()[0].vertices)
    at_two = corners[corners[:, 0] == 2.0][:, 1]
    assert float(at_two.max()) == pytest.approx(1 + 1.96 * 0.1)


def test_each_of_many_methods_has_a_line_of_its_own() -> None:
    def panels(level: float) -> dict[str, dict[str, list[float]]]:
        part = {"mean": [level, level], "standard_error": [0.0, 0.0], "median": [level, level]}
        return dict.fromkeys(("loss_difference", "accuracy", "first_order", "second_order"), part)

    models = [{"title": f"Method {n}", "name": f"run-{n}x", "panels": panels(float(n))} for n in range(14)]
    looks = line_looks(models)
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 14
    figure = landscape_figure({"settings": {"radii": [1.0, 2.0]}, "models": models})
    drawn = [line.get_ydata().tolist()[0] for line in figure.axes[0].lines]
    assert drawn == [float(n) for n in range(14)], "no two are averaged"
