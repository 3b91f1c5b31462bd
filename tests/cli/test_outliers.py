"""`dign evaluate --ood`: runs and any other model against images of another kind."""

import json

import pytest

from dign.cli.outliers import CONFLICTING, is_asked_for
from dign.core.errors import UserError

NOTHING = {**dict.fromkeys(CONFLICTING), "ood": "noise", "devices": 1, "nodes": 1}
MODEL = """
from torch import nn

def make():
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
"""


def test_what_does_not_go_together_is_said():
    assert is_asked_for(NOTHING) and not is_asked_for({**NOTHING, "ood": None, "attack": "pgd"})
    with pytest.raises(UserError, match="drop --set, or evaluate without --ood"):
        is_asked_for({**NOTHING, "sets": ("c-bar",)})
    with pytest.raises(UserError, match="drop --attack-images, or evaluate without --ood"):
        is_asked_for({**NOTHING, "attack_images": 5})
    with pytest.raises(UserError, match="drop --jpeg, or evaluate without --ood"):
        is_asked_for({**NOTHING, "jpeg": "85"})
    with pytest.raises(UserError, match="by one process: drop --devices"):
        is_asked_for({**NOTHING, "devices": 2})


def test_any_model_is_measured_and_the_file_says_against_what(dign_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_ood.py").write_text(MODEL)
    words = ("--model", "mine_ood:make", "--data", "digits", "--size", "8", "--ood", "noise", "--images", "20")
    code, out, err = dign_command("evaluate", *words, "--device", "cpu", "--json")
    assert code == 0 and "20 images of digits against 20 of noise" in err
    (entry,) = json.loads(out)
    stored = json.loads((tmp_path / "ood-noise.json").read_text())
    assert entry["scores"] == stored["scores"] and stored["scores"].keys() == {"softmax", "entropy", "energy"}
    code, out, err = dign_command("evaluate", *words[:-4], "--ood", "nothing-like-it")
    assert code == 2 and "nothing-like-it" in err and "gaussian" in err and "noise" in err
    code, out, err = dign_command("evaluate", *words[:-4], "--ood", "digits")
    assert code == 2 and "name images of another kind" in err and not (tmp_path / "ood-digits.json").exists()
