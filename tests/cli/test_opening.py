import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from dign.cli.opening import OF_MODEL, open_model, show_progress
from dign.core.errors import UserError
from dign.parallel.team import SINGLE_PROCESS

OPTIONS = {"data": None, "model": "hub:there", "out": None, "skip_unreadable": False, **dict.fromkeys(OF_MODEL)}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "name them with --data"),
        ({"data": "digits", "weights": "a.safetensors"}, "weights and settings of its own: leave out --weights"),
        (
            {"model": "resnet18", "data": "cifar10", "crop_fraction": 0.875},
            "--crop-fraction is for pictures of any size, and cifar10 has images of one: leave it out",
        ),
    ],
)
def test_a_model_needs_images_and_one_set_of_weights(given, sentence):
    with pytest.raises(UserError, match=sentence):
        open_model({**OPTIONS, **given}, Console(quiet=True), SINGLE_PROCESS)


MODEL = """
from torch import nn

def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
"""


def test_only_a_module_of_one_s_own_is_looked_for_in_the_working_directory(tmp_path, monkeypatch):
    """A folder with a stranger's model may have Python files beside it: they are not run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path.copy())
    (tmp_path / "onnxruntime.py").write_text("raise SystemExit('a stranger ran')")
    (tmp_path / "model.onnx").write_bytes(b"")
    given = {**OPTIONS, "size": None, "data": "digits"}
    for model in ("model.onnx", "hub:there", "timm:nothing-like-it", "missing.onnx", "mine:make"):
        with pytest.raises(UserError):
            open_model({**given, "model": model}, Console(quiet=True), SINGLE_PROCESS)
        assert (str(tmp_path) in sys.path) == (model == "mine:make")


def test_a_temperature_of_a_model_that_dign_did_not_train_comes_with_a_warning(dign_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_opening.py").write_text(MODEL)
    words = ("--model", "mine_opening:make", "--data", "digits", "--size", "8", "--only", "fog", "--severity", "1")
    words += ("--images", "5", "--device", "cpu", "-q")
    code, _, err = dign_command("evaluate", *words, "--temperature")
    assert code == 0 and err.count("\n") == 1
    assert err.startswith("dign: warning: dign does not know which images mine_opening:make was trained on")
    assert "overconfident: name images that it has not seen with --data." in err
    assert dign_command("evaluate", *words) == (0, "", "")


def test_results_of_another_model_are_not_replaced(dign_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_kept.py").write_text(MODEL)
    words = ("--model", "mine_kept:make", "--data", "digits", "--size", "8", "--only", "fog", "--severity", "1")
    words += ("--images", "5", "--device", "cpu", "-q")
    assert dign_command("evaluate", *words, "--label", "mine")[0] == 0
    before = (tmp_path / "results.json").read_bytes()
    code, _, err = dign_command("evaluate", *words, "--label", "another")
    assert code == 2 and "results.json holds the results of 'mine': choose another file for those of 'another'" in err
    assert (tmp_path / "results.json").read_bytes() == before
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    code, _, err = dign_command("evaluate", *words, "--out", "notes.json")
    assert code == 2 and "notes.json" in err and (tmp_path / "notes.json").read_text() == '{"mine": 1}'
    assert dign_command("evaluate", *words, "--label", "another", "--out", "another") == (0, "", "")


def test_no_bar_outside_a_terminal(capsys):
    with show_progress(Console(stderr=True), "evaluate") as follow:
        follow(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_long_measurement_is_told_once_that_fewer_images_would_do(capsys, monkeypatch):
    clock = iter([0.0, 1.0, 20.0, 40.0])
    monkeypatch.setattr("dign.cli.opening.time", SimpleNamespace(monotonic=lambda: next(clock)))
    with show_progress(Console(stderr=True), "evaluate", all_images=True) as follow:
        for done in (1, 100, 200):
            follow(done, 10_000)
    error = capsys.readouterr().err
    assert error.count("--images 300") == 1 and "9900 predictions take about 33 min more" in error


def test_a_short_one_or_one_of_few_images_is_not(capsys, monkeypatch):
    for done, all_images in ((9_000, True), (100, False)):
        clock = iter([0.0, 20.0])
        monkeypatch.setattr("dign.cli.opening.time", SimpleNamespace(monotonic=clock.__next__))
        with show_progress(Console(stderr=True), "evaluate", all_images=all_images) as follow:
            follow(done, 10_000)
    assert capsys.readouterr().err == ""
