"""What is checked before the first step."""

import pytest
import torch

from dign.core.errors import UserError
from dign.runs.config import RunConfig
from dign.training.train import train

SMALL = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 128, "method": "dign", "validate_every": 1}


def config(**changes):
    return RunConfig.from_mapping({**SMALL, **changes})


def test_a_net_for_one_size_refuses_small_images(tmp_path, monkeypatch):
    def build_for_one_size(*arguments, **named):
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 10))

    monkeypatch.setattr("dign.training.setup.build", build_for_one_size)
    with pytest.raises(UserError, match=r"tinynet cannot process images smaller than 16x16 \(.*\): leave"):
        train(config(size=16, small_first=0.5), tmp_path / "run")
    with pytest.raises(UserError, match="Images of 8x8 are too small to start with smaller ones"):
        train(config(size=8, small_first=0.5), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"size": 1}, "tinynet cannot be trained with 128 images of 1x1 at once"),
        ({"model": "densenet121", "size": 4, "method": "standard"}, "cannot be trained with 128 images of 4x4 at once"),
        ({"model": "resnet18", "batch_size": 1, "method": "standard"}, "with 1 image of 8x8 at once .*`batch_size`"),
        ({"model": "resnet18", "batch_size": 1, "method": "at"}, "with 1 image of 8x8 at once .*`batch_size`"),
        ({"method": "standard", "calibrate": "both"}, "Standard trains without the noise of DiGN"),
        ({"keep": "best", "validation": 0}, "`keep=best` needs validation images, and there are none"),
    ],
)
def test_what_cannot_be_trained_is_said_before_anything_is_written(tmp_path, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        train(config(**{"batch_size": 128, "size": 8, **changes}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_of_a_method_that_is_not_used_are_noted(tmp_path, capsys):
    run = train(config(method="standard", epochs=1, settings={"dign": {"sigma_max": 0.1}}), tmp_path / "run")
    note = "The settings of dign are ignored: the method is standard."
    assert note in run.info["notes"] and note in capsys.readouterr().err
    assert "dign" not in run.config.settings


def test_a_presets_settings_of_another_method_are_not_noted(tmp_path):
    settings = config(method="standard", preset="fast", model="tinynet", epochs=1)
    assert not any("ignored" in note for note in train(settings, tmp_path / "run", quiet=True).info["notes"])
