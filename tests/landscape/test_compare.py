"""`dign landscape` as a user runs it: files, figures, repeatability, and mistakes in one sentence."""

import json
import shutil
from pathlib import Path

import pytest

from dign.cli import main
from dign.landscape.figures import FORMATS
from dign.runs.checkpoints import save_weights
from dign.runs.config import RunConfig
from dign.runs.folder import create_run, load_run_data


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """Two finished runs of the smallest model, untrained: the landscape does not mind."""
    folder = tmp_path_factory.mktemp("runs")
    paths = []
    for method, seed in (("standard", 0), ("dign", 1)):
        config = RunConfig.from_mapping({"preset": "digits", "data": "digits", "method": method, "seed": seed})
        run = create_run(folder / method, config, load_run_data(config), [0.5] * 3, [0.25] * 3)
        save_weights(run.weights, run.untrained_model())
        paths.append(run.path)
    return paths


def dign(*words: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    return caught.value.code


FEW = ("--images", 12, "--draws", 1, "--radii", "0.5:2:3", "--device", "cpu")


@pytest.mark.slow
def test_files_and_figures(runs, tmp_path, capsys) -> None:
    out = tmp_path / "out"
    assert dign("landscape", *runs, "--out", out, *FEW, "--theory", "--theory-images", 4) == 0
    result = json.loads((out / "landscape.json").read_text())
    assert result["settings"]["radii"] == [0.5, 1.25, 2.0]
    assert [model["title"] for model in result["models"]] == ["Standard", "DiGN"]
    for model in result["models"]:
        assert model["images"] == 12
        assert {len(panel["mean"]) for panel in model["panels"].values()} == {3}
        assert model["theory"]["images"] == 4 and model["theory"]["dimension"] == 768
        assert model["theory"]["equation_8"]["ratio"][0] == pytest.approx(1, abs=0.2)
    signatures = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    for name in ("landscape", "theory"):
        for kind in FORMATS:
            assert (out / f"{name}.{kind}").read_bytes().startswith(signatures[kind])
    own = json.loads((runs[1] / "landscape.json").read_text())
    assert own["models"] == [result["models"][1]]
    assert "gradient norm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--radii", "many"), "invalid --radii"),
        (("--radii", "-1"), "radius must be a number of at least 0"),
        (("--eta", "0"), "eta"),
    ],
)
def test_mistakes_are_one_sentence(words, message, runs, tmp_path, capsys) -> None:
    assert dign("landscape", runs[0], "--out", tmp_path, *FEW, *words) == 2
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error and error.count("\n") == 1


def test_a_folder_that_is_not_a_run_and_a_run_named_twice(runs, tmp_path, capsys) -> None:
    assert dign("landscape", tmp_path, "--out", tmp_path) == 2
    assert "not a run folder" in capsys.readouterr().err
    assert dign("landscape", runs[0], runs[0], "--out", tmp_path) == 2
    assert "given twice" in capsys.readouterr().err


@pytest.mark.slow
def test_any_name_can_be_drawn_and_is_shown_as_it_is(runs, tmp_path, capsys) -> None:
    strange = tmp_path / r"a$\x$ [old]"
    shutil.copytree(runs[0], strange)
    out = tmp_path / "land [x]"
    assert dign("landscape", strange, "--out", out, *FEW) == 0
    said = capsys.readouterr().err
    assert r"a$\x$ [old]" in said and str(out / "landscape.png") in said
    assert (out / "landscape.png").exists()


def test_a_radius_beyond_all_numbers_is_one_sentence(runs, tmp_path, capsys) -> None:
    assert dign("landscape", runs[0], "--out", tmp_path / "out", *FEW[:4], "--radii", "1e38") == 2
    assert "not finite" in capsys.readouterr().err and not (tmp_path / "out").exists()
