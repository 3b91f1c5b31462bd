"""`dign evaluate RUN --attack`: its options, and what it prints."""

import json

import pytest
from PIL import Image

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
    for given, flag in (({"sets": ("c-bar",)}, "--set,"), ({"jpeg": "85"}, "--jpeg")):
        with pytest.raises(UserError, match=f"--attack measures no corruptions: drop {flag}"):
            make_attack(options(attack="pgd", **given))
    with pytest.raises(UserError, match="say the same"):
        make_attack(options(attack="pgd", images=5, attack_images=3))


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
    code, _, told = dign_command("evaluate", "run", *small[:-2], "--images", 10)
    assert code == 0 and "10 images of the test split" in told
    for label in range(10):
        (tmp_path / "photos" / str(label)).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (8, 8), (20 * label, number, 0)).save(tmp_path / "photos" / str(label) / f"{number}.png")
    own = (tmp_path / "run" / "attacks.json").read_text()
    code, _, told = dign_command("evaluate", "run", *small, "--data", "folder:photos")
    assert code == 0 and "other images than those of run" in told
    assert json.loads((tmp_path / "run" / "on-folder-photos" / "attacks.json").read_text())["attacks"]
    assert (tmp_path / "run" / "attacks.json").read_text() == own
    code, said, _ = dign_command("evaluate", "run", "--only", "fog", "--severity", 3, "--json", "-q")
    assert code == 0 and set(json.loads(said)[0]) >= {"name", "clean_accuracy", "calibration", "temperature"}
