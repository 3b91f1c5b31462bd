"""Configuration files: read, refused, written back."""

import tomllib

import pytest

from dign.core.errors import UserError
from dign.runs.toml_files import format_toml, parse_toml, read_toml


def test_unreadable_configuration_files_are_named(tmp_path):
    with pytest.raises(UserError, match="Cannot read"):
        read_toml(tmp_path / "missing.toml")
    (tmp_path / "bad.toml").write_text("a = = 1")
    with pytest.raises(UserError, match="not valid TOML"):
        read_toml(tmp_path / "bad.toml")


def test_numbers_beyond_64_bits_are_refused():
    with pytest.raises(UserError, match="more than 64 bits"):
        parse_toml(f"a = [{10**30}]", "a file")


@pytest.mark.parametrize("value", ['a "b"\\ \x7f\té', 0.1, 3, True, ["a", 1.5, False]])
def test_values_survive(value):
    assert tomllib.loads(f"a = {format_toml(value)}") == {"a": value}
