"""`dign list`."""

from __future__ import annotations

import textwrap
from typing import Any

import click

from dign.cli.messages import say, terminal_width
from dign.cli.options import json_option, print_json


@click.group("list", short_help="Show what there is: methods, models, data, corruptions.")
def command() -> None:
    """Show the names that the other commands take.

    \b
    Examples:
      dign list methods
      dign list corruptions --json
    """


@command.command("methods")
@json_option
def methods(as_json: bool) -> None:
    """Training methods with their settings, defaults, and cost in passes per image and step.

    \b
    Example:
      dign list methods
    """
    from dataclasses import fields

    from dign.core.catalog import METHODS as DESCRIPTIONS
    from dign.methods import METHODS
    from dign.methods.base import Method

    if as_json:
        print_json({name: _describe_method(kind(), DESCRIPTIONS[name]) for name, kind in METHODS.items()})
        return
    common = [spec.name for spec in fields(Method)]
    for name, kind in METHODS.items():
        method = kind()
        cost = method.cost
        passes = f"{cost.forward:g} forward, {cost.backward:g} backward: {cost.standard_steps:.1f} Standard steps"
        own = [spec.name for spec in fields(method) if spec.name not in common]
        say(click.style(name, bold=True) + f"  {DESCRIPTIONS[name]}", err=False)
        say(f"    passes per image and step: {passes}", err=False)
        click.echo(_wrap_options(_format_options(method, own)) + "\n" if own else "")
    say(f"All of them take {' and '.join(_format_options(METHODS['standard'](), common))}, too.", err=False)
    say("A sum of methods shares the clean pass: --method dign+augmix.", err=False)
    say("Augmentations in a sum change the batch for the others: --method cutmix+dign.", err=False)


def _describe_method(method: Any, description: str) -> dict[str, Any]:
    from dataclasses import asdict

    cost = {**asdict(method.cost), "standard_steps": method.cost.standard_steps}
    return {"description": description, "settings": asdict(method), "cost": cost}


@command.command("models")
@json_option
def models(as_json: bool) -> None:
    """Architectures.

    \b
    Example:
      dign list models
    """
    from dign.core.catalog import MODELS

    elsewhere = {
        "timm:NAME": "any architecture of the timm library (extra dign[timm])",
        "torchvision:NAME": "any classifier of torchvision (extra dign[torchvision])",
        "hub:DIR": "architecture and weights of a folder that `dign hub save` made",
    }
    _show_rows(("model", "what it is"), {**MODELS, **elsewhere}, as_json)


@command.command("data")
@json_option
def data(as_json: bool) -> None:
    """Data sets.

    \b
    Example:
      dign list data
    """
    from dign.data.names import NAMES, PICTURES

    _show_rows(("data", "what it is"), {**NAMES, **PICTURES}, as_json)


@command.command("corruptions")
@json_option
def corruptions(as_json: bool) -> None:
    """Corruptions by set, those of set c by family.

    \b
    Example:
      dign list corruptions
    """
    from dign.corruptions import FAMILIES
    from dign.corruptions.sets import DESCRIPTIONS, FURTHER_SETS, SETS

    if as_json:
        groups = {**FAMILIES, **{name: SETS[name] for name in FURTHER_SETS}}
        print_json({name: list(names) for name, names in groups.items()})
        return
    for name, names in SETS.items():
        say(click.style(name, bold=True) + f"  {DESCRIPTIONS[name]}", err=False)
        rows = {f"{family}: ": members for family, members in FAMILIES.items()} if name == "c" else {"": names}
        for family, members in rows.items():
            click.echo(_wrap(family + ", ".join(members), "      "))
        click.echo()
    click.echo("A whole set: --set c-bar; a family or a single corruption: --only noise, --only ripple.")


def _wrap(text: str, further: str = "    ") -> str:
    return click.wrap_text(text, min(100, terminal_width()), "    ", further)


def _wrap_options(options: list[str]) -> str:
    """In lines that break between options only: neither at a hyphen nor between an option and its value."""
    text = "  ".join(option.replace(" ", "\0") for option in options)
    width = min(100, terminal_width())
    how = {"initial_indent": "    ", "subsequent_indent": "    "}
    return textwrap.fill(text, width, break_on_hyphens=False, break_long_words=False, **how).replace("\0", " ")


def _format_options(method: Any, names: list[str]) -> list[str]:
    return [f"--{name.replace('_', '-')} {_format_value(getattr(method, name))}" for name in names]


def _format_value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple) and len(value) > 3:
        return f"{','.join(map(str, value[:2]))},... ({len(value)} in all)"
    return (",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()) or "''"


def _show_rows(columns: tuple[str, str], rows: dict[str, str], as_json: bool = False) -> None:
    if as_json:
        print_json(rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    table.add_column(columns[0], overflow="fold", no_wrap=True)
    table.add_column(columns[1], overflow="fold")
    for name, text in rows.items():
        table.add_row(Text(name), Text(text))
    Console().print(table, highlight=False)
