"""Options shared by verbs: those made from the fields of a configuration, and JSON output."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import click
from click.shell_completion import CompletionItem

from dign.core.errors import UserError
from dign.corruptions.sets import SETS
from dign.runs.config import RunConfig

_KINDS = {int: click.INT, float: click.FLOAT, str: click.STRING}


def config_options(complete: Mapping[str, Mapping[str, str]]) -> list[click.Option]:
    """One option per field of `RunConfig` except `data`; an option that is not given stays None, so that TOML applies.

    `complete` has the names, with descriptions, that a shell may complete for an option.
    """
    hints = get_type_hints(RunConfig)
    options = []
    for spec in fields(RunConfig):
        if spec.name in ("data", "settings"):
            continue
        kind, choices = hints[spec.name], spec.metadata["choices"]
        flags = [name.replace("_", "-") for name in (*spec.metadata["short"], spec.name)]
        default = "" if spec.default in (MISSING, "") else f"  [default: {_format_default(spec.default)}]"
        option = click.Option(
            [spec.name, *(f"--{flag}/--no-{flag}" if kind is bool else f"--{flag}" for flag in flags)],
            type=click.Choice(choices) if choices else None if kind is bool else _KINDS[kind],
            default=None,
            help=spec.metadata["help"] + default,
            shell_complete=_make_completer(complete[spec.name]) if spec.name in complete else None,
        )
        option.group = spec.metadata["group"]
        options.append(option)
    return options


def _format_default(default: Any) -> str:
    return (
        str(default).lower()
        if isinstance(default, bool)
        else f"{default:g}"
        if isinstance(default, float)
        else str(default)
    )


def _make_completer(names: Mapping[str, str]) -> Any:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
        known, _, last = incomplete.rpartition("+")
        prefix = f"{known}+" if known else ""
        matches = [(name, text) for name, text in names.items() if name.startswith(last)]
        return [CompletionItem(prefix + name, help=text) for name, text in matches]

    return complete


set_option = click.option(
    "--set",
    "sets",
    multiple=True,
    type=click.Choice(list(SETS)),
    help="a set of corruptions: c (default), or further ones (`dign list corruptions`); may be given more than once",
)
jpeg_option = click.option(
    "--jpeg",
    default="profile",
    show_default=True,
    metavar="QUALITY",
    help="JPEG after the corruption: a quality, none, or profile: as published, 85 at 64 and 224 pixels, none at 32",
)
skip_bad_option = click.option(
    "--skip-bad",
    "--skip-unreadable",
    "skip_unreadable",
    is_flag=True,
    help="leave out pictures that cannot be read, and say how many",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="no progress, no messages but errors")
json_option = click.option("--json", "as_json", is_flag=True, help="print the result as JSON on standard output")


def print_json(value: Any) -> None:
    """Print a value on standard output; numbers that JSON does not have, infinite or none at all, are null."""
    click.echo(json.dumps(_without_infinities(value), indent=1, ensure_ascii=False, allow_nan=False))


def _without_infinities(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _without_infinities(each) for key, each in value.items()}
    return [_without_infinities(each) for each in value] if isinstance(value, list | tuple) else value


class GroupedCommand(click.Command):
    """A command whose help shows its options under the headings of their groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record:
                groups.setdefault(getattr(param, "group", "Options"), []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)


def parse_words(words: list[str]) -> tuple[str | None, dict[str, str]]:
    """The data's name, and the options that the command itself does not have, as `--sigma-max 0.1`, by name."""
    data: str | None = None
    parsed: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or len(word) < 3:
            if data:
                raise UserError(f"'{word}' is one argument too many: see `dign train --help`.")
            data = word
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise UserError(f"{word} needs a value, or is not an option: see `dign train --help`.")
            value = rest.pop(0)
        if name == "data":
            raise UserError(f"The data is named without --data: `dign train {value}`.")
        parsed[name.replace("-", "_") if "." not in name else _normalize_dotted(name)] = value
    return data, parsed


def _normalize_dotted(name: str) -> str:
    owner, _, key = name.rpartition(".")
    return f"{owner}.{key.replace('-', '_')}"
