"""Options made from the fields of a configuration, and the words that no option takes."""

import json
from dataclasses import fields

import click
import pytest

from dign.cli.options import GroupedCommand, config_options, parse_words, print_json
from dign.core.errors import UserError
from dign.runs.config import RunConfig


def test_every_field_of_a_run_is_an_option_that_is_unset_by_default():
    options = {option.name: option for option in config_options({})}
    assert set(options) == {spec.name for spec in fields(RunConfig)} - {"data", "settings"}
    assert all(option.default is None for option in options.values()), "so that a TOML file applies"
    assert options["flip"].opts == ["--flip"] and options["flip"].secondary_opts == ["--no-flip"]
    assert "[default: 0.1]" in options["lr"].help


def test_a_sum_of_methods_is_completed_after_its_plus():
    names = {"method": {"dign": "noise", "rse": "x"}}
    (option,) = (option for option in config_options(names) if option.name == "method")
    found = option.shell_complete(click.Context(click.Command("train")), "augmix+d")
    assert [(item.value, item.help) for item in found] == [("augmix+dign", "noise")]


def test_help_shows_options_by_group():
    first, second = click.Option(["--lr"], help="rate"), click.Option(["--json"], help="as JSON")
    first.group = "Optimizer"
    command = GroupedCommand("train", params=[first, second])
    text = command.get_help(click.Context(command))
    assert text.index("Optimizer:") < text.index("--lr") < text.index("Options:") < text.index("--json")


def test_settings_of_methods_are_options_by_name():
    words = ["digits", "--sigma-max", "0.1", "--dign.start=0.5", "--dign-without-cr.sigma-max", "0.2"]
    settings = {"sigma_max": "0.1", "dign.start": "0.5", "dign-without-cr.sigma_max": "0.2"}
    assert parse_words(words) == ("digits", settings)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["digits", "cifar10"], "'cifar10' is one argument too many"),
        (["digits", "--sigma-max"], "--sigma-max needs a value"),
        (["--sigma-max", "--weight", "1"], "--sigma-max needs a value"),
        (["--data", "digits"], "`dign train digits`"),
    ],
)
def test_words_that_make_no_sense(words, message):
    with pytest.raises(UserError, match=message):
        parse_words(words)


def test_json_keeps_letters(capsys):
    print_json({"class": "Käfer"})
    assert "Käfer" in capsys.readouterr().out


def test_json_has_no_infinities(capsys):
    print_json({"quantile": float("inf"), "others": [1.5, (float("nan"), 2)]})
    assert json.loads(capsys.readouterr().out) == {"quantile": None, "others": [1.5, [None, 2]]}
