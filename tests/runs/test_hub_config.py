"""The configuration of a hub folder: read without torch, and checked."""

import json
from pathlib import Path

import pytest

from dign.core.errors import UserError
from dign.runs.hub_config import hub_folder, is_hub_folder, read_hub_config

CONFIG = {
    "model": "tinynet", "classes": ["cat", "dog"], "image_size": [8, 8], "mean": [0.5] * 3, "std": [0.25] * 3,
    "data": "digits", "method": "dign", "settings": {"dign": {"sigma_max": 0.1}},
}  # fmt: skip
MIDDLE = {"fit": "crop", "crop_fraction": 1.0, "interpolation": "bicubic"}


def test_a_valid_configuration_is_read_without_what_others_added(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"transformers_version": "4"}))
    assert is_hub_folder(tmp_path) and read_hub_config(tmp_path) == CONFIG | {"framing": MIDDLE, "seen": None}


def test_what_the_model_has_seen_is_kept_and_anything_else_is_refused(tmp_path):
    def read(seen):
        (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"seen": seen}))
        return read_hub_config(tmp_path)["seen"]

    assert read({"images": 5, "validation": 0, "validation_seed": 1, "more": 2}) == {
        "images": 5, "validation": 0.0, "validation_seed": 1,
    }  # fmt: skip
    for wrong in ([1], {"images": "5"}, {"images": 5, "validation": None, "validation_seed": 0}):
        with pytest.raises(UserError, match="seen"):
            read(wrong)


def test_the_framing_is_kept_and_one_that_is_not_known_is_refused(tmp_path):
    def read(framing):
        (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"framing": framing}))
        return read_hub_config(tmp_path)["framing"]

    assert read({"crop_fraction": 0.875}) == MIDDLE | {"crop_fraction": 0.875}
    for wrong in ({"fit": "fold"}, {"crop_fraction": "half"}, {"zoom": 2}, [1]):
        with pytest.raises(UserError, match="has a framing that dign does not know"):
            read(wrong)


def test_a_run_folder_is_not_a_hub_folder(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "config.toml").touch()
    assert not is_hub_folder(tmp_path)


def test_the_prefix_is_optional():
    assert hub_folder("hub:a/b") == hub_folder("a/b") == Path("a/b")


@pytest.mark.parametrize("text", ["", "[1", "\xff"])
def test_a_file_that_is_not_json_is_one_sentence(tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match="is not a hub folder"):
        read_hub_config(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "hub:elsewhere"},
        {"model": 3},
        {"classes": ["one"]},
        {"classes": [1, 2]},
        {"image_size": [8, -8]},
        {"image_size": [8, 10**9]},
        {"mean": [0.5]},
        {"std": ["a", "b", "c"]},
        {"settings": {"dign": 3}},
    ],
)
def test_an_untrusted_configuration_is_checked(tmp_path, change):
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | change))
    with pytest.raises(UserError, match="was not written by dign"):
        read_hub_config(tmp_path)
