"""Configurations: presets, files, and what is wrong with a value."""

import tomllib

import pytest
from real_torchvision import need

from dign.core.errors import UserError
from dign.runs.config import RunConfig
from dign.runs.presets import PRESETS


def test_a_configuration_survives_toml():
    values = {"data": 'folder:/a b/"c"\x7f\t\u00e9', "lr": 1, "settings": {"dign": {"weight": 0.5, "together": False}}}
    config = RunConfig.from_mapping(values)
    assert config.lr == 1.0 and isinstance(config.lr, float)
    assert RunConfig.from_mapping(tomllib.loads(config.to_toml())) == config


def test_defaults_are_the_published_recipe():
    config = RunConfig.from_mapping({"data": "cifar10", "preset": "paper"})
    assert (config.epochs, config.batch_size, config.lr, config.momentum, config.weight_decay) == (
        150,
        512,
        0.1,
        0.9,
        5e-4,
    )
    assert (config.schedule, config.crop, config.flip, config.jitter, config.rotation) == ("step", 4, True, 0.25, 2.0)


def test_a_presets_settings_of_a_method_stand_unless_others_are_given():
    fast = {"data": "cifar10", "preset": "fast"}
    config = RunConfig.from_mapping({**fast, "settings": {"dign": {"weight": 3.0}, "augmix": {"weight": 6.0}}})
    measured = RunConfig.from_mapping(fast).settings["dign"]
    assert measured["weight"] == 1.0 and measured["samples"] == 1
    assert config.settings == {"dign": {**measured, "weight": 3.0}, "augmix": {"weight": 6.0}}
    assert RunConfig.from_mapping({**fast, "settings": {"dign": 1}}).settings == {"dign": 1}, "refused later"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data": "digits", "epoch": 1}, "Did you mean 'epochs'"),
        ({"data": "digits", "epochs": 1.5}, "epochs must be a whole number"),
        ({"data": "digits", "epochs": True}, "epochs must be a whole number"),
        ({"data": "digits", "lr": "fast"}, "lr must be a number"),
        ({"data": "digits", "lr": float("nan")}, "lr must be at least"),
        ({"data": "digits", "schedule": "stp"}, "Did you mean 'step'"),
        ({"data": "digits", "validation": 1.0}, "below 1"),
        ({"data": "digits", "preset": "papr"}, "Did you mean 'paper'"),
        ({"data": "digits", "preset": ["fast"]}, "Unknown preset"),
        ({"data": "digits", "seed": 2**63}, "seed must be below"),
        ({"data": "folder:caf\udce9"}, r"data 'folder:caf.udce9' is not valid UTF-8"),
        ({"epochs": 1}, "data is missing"),
        ({"data": "folder:x", "scale": 0.5}, "scale needs a size"),
        ({"data": "cifar10", "size": 128, "preset": "photos"}, "scale cuts random crops out of photographs"),
        ({"data": "folder:x", "size": 128, "scale": 1.5}, "scale must be at most 1"),
        ({"data": "folder:x", "fit": "fill"}, "Unknown fit"),
        ({"data": "digits", "data_memory": 2}, "data_memory is a share of the device's memory"),
        ({"data": "digits", "dign": {"weight": 1}}, r"under \[settings.dign\]"),
    ],
)
def test_wrong_values_are_named(values, message):
    with pytest.raises(UserError, match=message):
        RunConfig.from_mapping(values)


def test_freezing_needs_weights_to_keep():
    with pytest.raises(UserError, match="set init as well"):
        RunConfig(data="digits", freeze="body")


def test_photographs_are_cut_and_resized_as_the_weights_were_trained():
    need("torchvision", "torchvision")

    def framing(**values):
        config = RunConfig.from_mapping({"data": "folder:x", "size": 224, "init": "x.pth", **values})
        return config.crop_fraction, config.interpolation

    assert framing(model="torchvision:convnext_tiny") == (0.9492, "bilinear")  # 224 of 236 pixels
    assert framing(model="torchvision:convnext_tiny", crop_fraction=0.5) == (0.5, "bilinear")
    assert framing(model="torchvision:convnext_tiny", preset="paper") == (1.0, "bicubic")
    assert framing(model="efficientnet_lite0") == framing(model="resnet18") == (0.875, "bicubic")


def test_photographs_are_fine_tuned_as_was_measured():
    values = {"data": "folder:x", "size": 128, "model": "efficientnet_lite0"}
    fresh, tuned = RunConfig.from_mapping(values), RunConfig.from_mapping({**values, "init": "x.pth"})
    assert (fresh.lr, fresh.head_lr, fresh.freeze_norms) == (PRESETS["photos"]["lr"], 1.0, False)
    assert (tuned.lr, tuned.head_lr, tuned.freeze_norms) == (0.003, 10.0, True)
    assert tuned.settings == {"dign": {"sigma_max": 0.2, "weight": 1.0, "samples": 1}} and not fresh.settings
    assert not RunConfig.from_mapping({**values, "init": "x.pth", "freeze_norms": False}).freeze_norms


def test_small_batches_take_small_steps():
    """What was measured: at 0.05 photographs of 160 pixels in batches of 32 diverge."""

    def rate(**values):
        return RunConfig.from_mapping({"data": "folder:x", "size": 160, "preset": "laptop", **values}).lr

    assert rate() == rate(batch_size=512) == 0.05
    assert rate(batch_size=32) == pytest.approx(0.05 / 8) and rate(batch_size=32, lr=0.02) == 0.02
    assert rate(batch_size=32, init="x.pth") == 0.005, "a tenth is small enough"
    assert rate(batch_size=8, preset="photos") == pytest.approx(PRESETS["photos"]["lr"] / 4)
    assert rate(batch_size=50, preset="fast") == PRESETS["fast"]["lr"], "steps of a fixed length"
    assert rate(batch_size=32, preset="paper") == 0.1, "the published recipe"


def test_norms_can_be_frozen_only_where_there_are_weights():
    with pytest.raises(UserError, match="freeze_norms needs weights to keep: set init as well"):
        RunConfig(data="cifar10", freeze_norms=True)
