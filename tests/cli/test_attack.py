"""`dign evaluate RUN --attack`: its options, and what it prints."""

import json

import pytest

from dign.cli.attack import make_attack, parse_eps
from dign.core.errors import UserError

NONE = dict.fromkeys(("attack", "norm", "eps", "steps", "restarts", "attack_images"))


def options(**given):
    return {**NONE, "seed": 0, "only": (), "severity": None, **given}


def test_radii_may_be_fractions():
    assert (parse_eps("8/255"), parse_eps("0.5")) == (8 / 255, 0.5)
    for wrong in ("a", "1/0", "-1", "0", "inf", ""):
        with pytest.raises(UserError, match="invalid --eps"):
            parse_eps(wrong)


def test_defaults_follow_the_norm():
    assert make_attack(options()) is None
    assert make_attack(options(attack="apgd")).eps == 8 / 255
    assert make_attack(options(attack="pgd", norm="l2", steps=7)).title == "PGD l2 0.5"


def test_what_does_not_go_together_is_said():
    with pytest.raises(UserError, match="--attack-images belongs to --attack"):
        make_attack(options(attack_images=3))
    with pytest.raises(UserError, match="--attack measures no corruptions: drop --only"):
        make_attack(options(attack="pgd", only=("fog",)))


@pytest.mark.slow
def test_runs_and_models_are_attacked(dign_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ("train", "digits", "--size", 8, "--epochs", 1, "--track", "none", "--method", "standard", "-q")
    assert dign_command(*words, "--out", "run")[0] == 0
    small = ("--attack", "pgd", "--eps", "4/255", "--steps", 2, "--attack-images", 20)
    code, said, told = dign_command("evaluate", "run", *small, "--json")
    assert code == 0 and "under PGD linf 4/255 (2 steps, 20 images of the test split)" in told
    (summary,) = json.loads(said)
    assert summary["name"] == "run" and summary["robust_accuracy"] <= summary["accuracy"]
    assert dign_command("hub", "save", "run", "hub", "-q")[0] == 0
    code, said, told = dign_command(
        "evaluate", "--model", "hub:hub", "--data", "digits", "--size", 8, *small, "--out", "o"
    )
    assert code == 0 and (tmp_path / "o" / "attacks.json").is_file()
    code, said, _ = dign_command("evaluate", "run", "--only", "fog", "--severity", 3, "--json", "-q")
    assert code == 0 and set(json.loads(said)[0]) >= {"name", "clean_accuracy", "calibration", "temperature"}
