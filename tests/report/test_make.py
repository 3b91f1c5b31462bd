"""From paths of runs to a written report."""

import json
from pathlib import Path

import pytest

from dign.core.errors import UserError
from dign.report.make import comparison_of, make_report


@pytest.mark.parametrize(
    ("name", "start"), [("r.html", "<!doctype html>"), ("r.md", "## Summary"), ("r.csv", "table,"), ("r.tex", "% Comp")]
)
def test_the_suffix_chooses_the_format(demo_runs, tmp_path, name, start):
    path = make_report(demo_runs, str(tmp_path / "deep" / name))
    assert path == tmp_path / "deep" / name and path.read_text().startswith(start)


def test_one_path_several_paths_and_strings_are_taken(demo_runs, tmp_path):
    paths = sorted(demo_runs.iterdir())
    for runs in (demo_runs, str(demo_runs), paths, list(map(str, paths))):
        make_report(runs, tmp_path / "r.md")
        assert "| DiGN w/o CR |" in (tmp_path / "r.md").read_text()


def test_a_file_of_another_kind_is_refused_and_left_alone(demo_runs, tmp_path):
    picture = tmp_path / "photo.jpg"
    picture.write_text("a photograph")
    with pytest.raises(UserError, match=r"expected a name in \.html, .* or \.tex"):
        make_report(demo_runs, picture)
    assert picture.read_text() == "a photograph"


def test_no_runs_are_refused(tmp_path):
    with pytest.raises(UserError, match="runs is empty"):
        make_report([], tmp_path / "r.html")


def test_a_python_caller_is_told_of_no_option(fake_run, tmp_path):
    fake_run(tmp_path / "a", data="digits")
    fake_run(tmp_path / "b", data="cifar10")
    for runs, out, data in ((tmp_path, "r.html", None), (tmp_path, "r.html", "mnist"), (tmp_path, "r.pdf", None)):
        with pytest.raises(UserError) as error:
            make_report(runs, Path(tmp_path / out), data=data)
        assert "--" not in str(error.value)
    make_report(tmp_path, tmp_path / "r.html", data="cifar10")


def test_compare_keeps_the_order_given_and_pairs_seeds(fake_run, tmp_path):
    for seed in range(3):
        fake_run(tmp_path / "d" / str(seed), "DiGN", seed)
        fake_run(tmp_path / "s" / str(seed), "Standard", seed)
    study = comparison_of(tmp_path / "d", tmp_path / "s")
    assert [(group.label, len(group.runs)) for group in study.groups] == [("DiGN", 3), ("Standard", 3)]


def test_compare_refuses_a_side_with_several_methods(demo_runs, fake_run, tmp_path):
    with pytest.raises(UserError, match="several methods"):
        comparison_of(demo_runs, fake_run(tmp_path / "a"))


def test_outliers_are_among_the_tables(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    scores = {"softmax": {"auroc": 91.5, "aupr": 90.0, "fpr95": 30.0}}
    (folder / "ood-noise.json").write_text(json.dumps({"outliers": "noise", "others": 40, "scores": scores}))
    text = make_report(folder, tmp_path / "r.md").read_text()
    assert "## Out of distribution" in text and "| 91.5 |" in text
