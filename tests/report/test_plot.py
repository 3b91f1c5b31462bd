"""Figures for papers: what is drawn is what was measured."""

import json

import pytest
import torch
from matplotlib.figure import Figure

import dign
from dign.core.errors import UserError
from dign.metrics import Calibration
from dign.report import plot
from dign.report.html.landscape_section import PANELS
from dign.report.load import load_run


def drawn_lines(axes):
    return {line.get_label(): list(zip(*line.get_data(), strict=True)) for line in axes.lines}


def test_accuracy_by_severity_is_the_mean_over_the_noises_from_clean_on(demo_runs):
    results = json.loads((demo_runs / "dign" / "results.json").read_text())
    noises = [results["corruptions"][f"{name}_noise"]["severities"] for name in ("shot", "impulse", "speckle")]
    figure = plot.accuracy_by_severity([demo_runs / "dign", str(demo_runs / "standard")])
    lines = drawn_lines(figure.axes[0])
    assert isinstance(figure, Figure) and set(lines) == {"DiGN", "Standard"}
    assert lines["DiGN"][0] == (0, pytest.approx(results["clean"]["accuracy"]))
    assert lines["DiGN"][4] == (4, pytest.approx(sum(noise["4"]["accuracy"] for noise in noises) / 3))
    low, high = figure.axes[0].get_ylim()
    assert high == 100 and low <= 80


def test_one_corruption_alone_and_names_of_one_s_own(demo_runs):
    run = load_run(demo_runs / "dign")
    lines = drawn_lines(plot.accuracy_by_severity({"mine": run}, "shot_noise").axes[0])
    assert lines["mine"][5] == (5, pytest.approx(run.results.corruptions["shot_noise"].accuracies[5]))


def test_a_reliability_diagram_has_a_bar_of_each_filled_bin_s_accuracy(demo_runs):
    run = load_run(demo_runs / "dign")
    figure = plot.reliability(run)
    bins = run.results.clean.calibration.reliability()
    heights = [bar.get_height() for bar in figure.axes[0].patches[::2]]
    assert heights == pytest.approx([100 * a for a, n in zip(bins["accuracy"], bins["count"], strict=True) if n])
    assert len(plot.reliability([demo_runs / "dign", demo_runs / "rse"], "noise", 5).axes) == 2


def test_risk_and_coverage_by_hand():
    counts = Calibration(10)
    # confidences 0.95 (right), 0.95 (wrong), 0.75 (right), 0.55 (wrong)
    confidences = torch.tensor([0.95, 0.95, 0.75, 0.55])
    probabilities = torch.stack([confidences, 1 - confidences], dim=1)
    counts.update(probabilities, torch.tensor([0, 1, 0, 1]))
    curve = plot.risk_coverage_curve(counts)
    assert curve == [(50.0, 50.0), (75.0, pytest.approx(100 / 3)), (100.0, 50.0)]


def test_the_risk_at_full_coverage_is_the_error(demo_runs):
    run = load_run(demo_runs / "dign")
    (line,) = drawn_lines(plot.risk_coverage(run, "clean").axes[0]).values()
    assert line[-1] == (pytest.approx(100), pytest.approx(100 - run.results.clean.accuracy))


def test_results_that_keep_their_images_give_the_exact_curve():
    sure = torch.tensor([0.9, 0.88, 0.86, 0.84])  # one bin: its counts cannot tell that the surest answer is right

    def predict(images):
        return torch.stack([images[:, 0, 0, 0], 1 - images[:, 0, 0, 0]], 1)

    images = sure.view(4, 1, 1, 1).expand(4, 3, 8, 8)
    conditions = dign.Conditions(corruptions=[], severities=[1])
    results = dign.evaluate(predict, (images, torch.tensor([0, 0, 1, 1])), conditions)
    (line,) = drawn_lines(plot.risk_coverage(results, "clean").axes[0]).values()
    assert min(risk for _, risk in line) == 0 and line[-1] == (pytest.approx(100), pytest.approx(50))


def test_more_diagrams_than_fit_side_by_side_go_below(demo_runs):
    figure = plot.reliability({f"a long name of a run, number {i}": demo_runs / "dign" for i in range(6)})
    places = [axes.get_subplotspec() for axes in figure.axes]
    assert [(place.rowspan.start, place.colspan.start) for place in places] == [
        (0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1),
    ]  # fmt: skip
    assert all("…" in axes.get_title(loc="left") for axes in figure.axes)


def test_a_landscape_has_its_four_panels(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    with pytest.raises(UserError, match="dign landscape"):
        plot.landscape(folder)
    panel = {"mean": [0.1, 0.2]}
    landscape = {"settings": {"radii": [1, 2]}, "models": [{"panels": dict.fromkeys(PANELS, panel)}]}
    (folder / "landscape.json").write_text(json.dumps(landscape))
    figure = plot.landscape(folder)
    assert [drawn_lines(axes)["DiGN"] for axes in figure.axes] == [[(1, 0.1), (2, 0.2)]] * 4


def test_what_was_not_measured_is_named_with_what_was(demo_runs):
    with pytest.raises(UserError, match=r"not evaluated under 'fog': expected one of clean, noise, all, gau"):
        plot.reliability(demo_runs / "dign", "fog")
    with pytest.raises(UserError, match="evaluated at 1, 2, 3, 4, 5"):
        plot.risk_coverage(demo_runs / "dign", severity=7)
    with pytest.raises(UserError, match="runs is empty"):
        plot.reliability([])


def test_runs_of_one_method_are_named_by_their_folders_and_have_their_own_colors(fake_run, tmp_path):
    for name in ("first", "second"):
        fake_run(tmp_path / name, run={"name": name})
    axes = plot.accuracy_by_severity([tmp_path / "first", tmp_path / "second"]).axes[0]
    assert set(drawn_lines(axes)) == {"first", "second"}
    assert len({line.get_color() for line in axes.lines}) == 2


def test_results_of_any_model_are_drawn_without_a_folder(demo_runs):
    results = load_run(demo_runs / "dign").results
    line = drawn_lines(plot.accuracy_by_severity({"mine": results}).axes[0])["mine"]
    assert line == drawn_lines(plot.accuracy_by_severity(demo_runs / "dign").axes[0])["DiGN"]
    assert len(plot.reliability(results).axes) == 1
    with pytest.raises(UserError, match="several runs are called 'dign-0': name them"):
        plot.reliability([results, results])
    with pytest.raises(UserError, match="runs has a int: expected Results, or the folder"):
        plot.reliability(3)
