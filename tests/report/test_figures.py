"""The picture for a README."""

import json

import pytest

from dign.core.errors import UserError
from dign.report.analysis.quantities import MCA_N
from dign.report.analysis.story import ranking
from dign.report.figures import draw_figure
from dign.report.make import study_of


@pytest.mark.slow
def test_the_picture_is_a_png_of_readable_size(demo_runs, grid_runs, fake_run, tmp_path):
    from PIL import Image

    for name, runs in (("demo", demo_runs), ("grid", grid_runs)):
        with Image.open(draw_figure(study_of([runs]), tmp_path / f"{name}.png")) as image:
            assert image.format == "PNG" and image.width > 1500 and image.height > 400
    blur = fake_run(tmp_path / "blur", families=("blur",))
    with pytest.raises(UserError, match="not evaluated under noise"):
        draw_figure(study_of([blur]), tmp_path / "no.png")
    assert not (tmp_path / "no.png").exists()


def test_the_picture_shows_a_model_that_is_always_wrong_and_any_name(fake_run, tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn, plot = [], Axes.plot

    def plotted(axes, *values, **how):
        drawn.append(values[0])
        return plot(axes, *values, **how)

    monkeypatch.setattr(Axes, "plot", plotted)
    folder = fake_run(tmp_path / "a", run={"title": r"a$\x$b"})
    results = json.loads((folder / "results.json").read_text())
    for entry in results["corruptions"].values():
        bins = entry["severities"]["5"]["bins"]
        entry["severities"]["5"] |= {"accuracy": 0.0, "bins": bins | {"correct": [0] * len(bins["correct"])}}
    (folder / "results.json").write_text(json.dumps(results))
    draw_figure(study_of([folder]), tmp_path / "figure.png")
    assert drawn[0] == (0, 1, 2, 3, 4, 5)


@pytest.mark.filterwarnings("error")  # of axes that a legend leaves no room for
def test_very_many_methods_are_ranked_in_rows(fake_run, tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    labels, ticks = [], Axes.set_yticks

    def with_ticks(axes, places, names=(), **how):
        labels.extend(names or ())
        return ticks(axes, places, names or None, **how)

    monkeypatch.setattr(Axes, "set_yticks", with_ticks)
    for number in range(20):
        run = {"title": f"M{number}", "method": f"m{number}", "name": f"m{number}"}
        fake_run(tmp_path / "runs" / f"m{number}", ("Standard", "DiGN", "AugMix")[number % 3], number, run=run)
    study = study_of([tmp_path / "runs"])
    draw_figure(study, tmp_path / "figure.png")
    assert labels[:20] == [group.label for group in ranking(study)], "the best on top"
    accuracies = [group.mean(MCA_N) for label in labels[:20] for group in study.groups if group.label == label]
    assert len(set(accuracies)) > 2 and accuracies == sorted(accuracies, reverse=True)


def test_ranked_methods_have_dots_where_part_of_the_noise_was_measured(fake_run, tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    dots, plot = {}, Axes.plot

    def plotted(axes, *values, **how):
        dots[how.get("label")] = len(values[0])
        return plot(axes, *values, **how)

    monkeypatch.setattr(Axes, "plot", plotted)
    for number in range(14):
        folder = fake_run(tmp_path / "runs" / f"m{number}", run={"title": f"M{number}", "method": f"m{number}"})
        results = json.loads((folder / "results.json").read_text())
        for corruption in results["corruptions"].values():
            corruption["severities"] = {"3": corruption["severities"]["3"]}
        (folder / "results.json").write_text(json.dumps(results))
    draw_figure(study_of([tmp_path / "runs"]), tmp_path / "figure.png")
    assert dots["under noise"] == dots["clean"] == 14 and "under all corruptions" not in dots
