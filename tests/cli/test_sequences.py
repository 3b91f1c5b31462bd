"""`dign evaluate RUN --sequences`: its options, and what it prints."""

import json

import pytest

from dign.cli.sequences import choose_perturbations, summary_line
from dign.core.errors import UserError
from dign.corruptions.sequences import PERTURBATIONS
from dign.evaluation.sequences import SequenceResult, Stability


def test_all_ten_or_those_of_only():
    assert choose_perturbations({"only": ()}) == PERTURBATIONS
    assert choose_perturbations({"only": ("snow", "tilt", "snow")}) == ("snow", "tilt")


def test_what_does_not_go_together_is_said():
    with pytest.raises(UserError, match="drop --severity, or drop --sequences"):
        choose_perturbations({"only": (), "severity": "3"})
    with pytest.raises(UserError, match="drop --set,"):
        choose_perturbations({"only": (), "sets": ("c-bar",)})
    with pytest.raises(UserError, match="drop --jpeg, or drop --sequences"):
        choose_perturbations({"only": (), "jpeg": "85"})
    with pytest.raises(UserError, match="Unknown perturbation 'fog'"):
        choose_perturbations({"only": ("fog",)})


def test_the_line_names_what_the_mean_is_over():
    part = SequenceResult({"tilt": Stability(4.0, 0.5), "rotate": Stability(6.0, 0.7)}, 20, "test")
    assert summary_line("a", part) == (
        "a: 5.00 % of frames flip (mean over tilt, rotate), top-5 distance 0.600 (20 images of the test split)"
    )
    whole = SequenceResult({name: Stability(1.0, 0.1) for name in PERTURBATIONS}, 20, "test")
    assert "(mFP)" in summary_line("a", whole)


@pytest.mark.slow
def test_a_run_is_measured(dign_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("train", "digits", "--size", 8, "--epochs", 1, "--track", "none", "--method", "standard", "-q")
    assert dign_command(*map(str, words), "--out", "run")[0] == 0
    code, out, err = dign_command("evaluate", "run", "--sequences", "--images", "30", "--only", "translate", "--json")
    assert code == 0 and "of frames flip (mean over translate)" in err
    (summary,) = json.loads(out)
    assert summary["images"] == 30 and json.loads((tmp_path / "run" / "sequences.json").read_text())["images"] == 30
