"""Seeds, atomic files, schedules, configurations: what everything else stands on."""

import json
import os
import tomllib
from typing import Optional

import pytest
import torch
from torch import nn

from dign.core.checks import coerce
from dign.core.errors import UserError
from dign.core.files import replace_file, write_json
from dign.core.seeds import derive_seed, make_generator
from dign.runs.checkpoints import save_weights
from dign.runs.config import PRESETS, RunConfig, read_toml
from dign.training.schedule import learning_rate


def test_a_generator_depends_on_seed_purpose_and_step_alone():
    draw = lambda *key: torch.rand(3, generator=make_generator(*key)).tolist()  # noqa: E731
    assert draw(0, "order", 4) == draw(0, "order", 4)
    keys = [(0, "order", 4), (1, "order", 4), (0, "noise", 4), (0, "order", 5)]
    assert len({tuple(draw(*key)) for key in keys}) == 4
    assert 0 <= derive_seed(123, "x") < 2**63


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    target = tmp_path / "file.json"
    write_json(target, {"a": 1})
    with pytest.raises(RuntimeError), replace_file(target) as partial:
        partial.write_text("half")
        raise RuntimeError
    assert json.loads(target.read_text()) == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]
    with pytest.raises(ValueError):
        write_json(target, {"a": float("nan")})
    assert json.loads(target.read_text()) == {"a": 1}


def test_a_file_gets_the_permissions_of_any_new_file(tmp_path):
    before = os.umask(0o027)
    try:
        save_weights(tmp_path / "model.safetensors", nn.Linear(2, 2))
        write_json(tmp_path / "file.json", {})
    finally:
        os.umask(before)
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()} == {"0o640"}


def test_a_link_in_the_place_of_the_temporary_file_is_not_written_through(tmp_path):
    (tmp_path / "mine").write_text("untouched")
    (tmp_path / ".file.json.partial").symlink_to(tmp_path / "mine")
    write_json(tmp_path / "file.json", {})
    assert (tmp_path / "mine").read_text() == "untouched" and not (tmp_path / "file.json").is_symlink()


def test_a_folder_or_a_device_is_never_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UserError, match="choose another name"):
            write_json(path, {})
    assert (tmp_path / "pipe").is_fifo()


def test_the_paper_schedule_drops_at_epochs_50_and_100():
    rates = [learning_rate("step", 0.1, epoch, 150) for epoch in (0, 49, 50, 99, 100, 149)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_one_cycle_goes_up_then_down_and_cosine_down():
    cycle = [learning_rate("one-cycle", 1.0, step, 100, warmup=0.2) for step in range(100)]
    assert cycle.index(max(cycle)) in (19, 20) and cycle[0] > 0 and cycle[-1] > 0
    assert cycle[10] == pytest.approx(10.5 / 20) and cycle[60] == pytest.approx(39.5 / 80)
    cosine = [learning_rate("cosine", 1.0, step, 10) for step in range(10)]
    assert cosine == sorted(cosine, reverse=True) and sum(cosine) == pytest.approx(5)


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


@pytest.mark.parametrize("preset", PRESETS)
def test_options_win_over_presets(preset):
    assert RunConfig.from_mapping({"data": "digits", "preset": preset, "epochs": 3}).epochs == 3


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
        ({"data": "folder:caf\udce9"}, r"data 'folder:caf.udce9' has bytes that are not UTF-8"),
        ({"epochs": 1}, "Which data"),
        ({"data": "digits", "dign": {"weight": 1}}, r"under \[settings.dign\]"),
    ],
)
def test_wrong_values_are_named(values, message):
    with pytest.raises(UserError, match=message):
        RunConfig.from_mapping(values)


def test_text_becomes_what_the_field_wants():
    assert coerce("off", bool, "x") is False
    assert coerce("3", int, "x") == 3
    assert coerce("1,2", tuple[int, ...], "x") == (1, 2)
    assert coerce("none", float | None, "x") is None
    for kind in (int | None, Optional[int]):  # noqa: UP045 - one and the same from Python 3.14 on
        assert coerce("2", kind, "x") == 2 and coerce(None, kind, "x") is None


def test_unreadable_configuration_files_are_named(tmp_path):
    with pytest.raises(UserError, match="Cannot read"):
        read_toml(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(UserError, match="not valid TOML"):
        read_toml(tmp_path / "bad.toml")
