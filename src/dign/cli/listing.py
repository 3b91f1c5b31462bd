"""`dign list`."""

from __future__ import annotations

import click


@click.group("list", short_help="Show what there is: methods, models, data, corruptions.")
def command() -> None:
    """Show the names that the other commands take.

    \b
    Examples:
      dign list methods
      dign list corruptions
    """


@command.command("methods")
def methods() -> None:
    """Training methods with their settings, defaults, and cost in passes per image and step.

    \b
    Example:
      dign list methods
    """
    from dataclasses import fields

    from dign.core.catalog import METHODS as DESCRIPTIONS
    from dign.methods import METHODS

    for name, kind in METHODS.items():
        method = kind()
        cost = method.cost
        passes = f"{cost.forward:g} forward, {cost.backward:g} backward: {cost.standard_steps:.1f} Standard steps"
        options = [f"--{spec.name.replace('_', '-')} {_short(getattr(method, spec.name))}" for spec in fields(method)]
        click.echo(click.style(name, bold=True) + f"  {DESCRIPTIONS[name]}")
        click.echo(f"    passes per image and step: {passes}")
        click.echo(click.wrap_text("  ".join(options), 100, "    ", "    "))
        click.echo()
    click.echo("A sum of methods shares the clean pass: --method dign+augmix.")


@command.command("models")
def models() -> None:
    """Architectures.

    \b
    Example:
      dign list models
    """
    from dign.core.catalog import MODELS

    elsewhere = {
        "timm:NAME": "any architecture of the timm library (extra dign\\[timm])",
        "hub:DIR": "architecture and weights of a folder that `dign hub save` made (extra dign\\[hub])",
    }
    _show_rows(("model", "what it is"), {**MODELS, **elsewhere})


@command.command("data")
def data() -> None:
    """Data sets.

    \b
    Example:
      dign list data
    """
    from dign.data.names import FOLDER_DESCRIPTION, FOLDER_PREFIX, NAMES

    _show_rows(("data", "what it is"), {**NAMES, f"{FOLDER_PREFIX}PATH": FOLDER_DESCRIPTION})


@command.command("corruptions")
def corruptions() -> None:
    """Corruptions by family.

    \b
    Example:
      dign list corruptions
    """
    from dign.corruptions import FAMILIES

    rows = {family: ", ".join(names) for family, names in FAMILIES.items()}
    _show_rows(("family", "corruptions"), rows)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()


def _show_rows(columns: tuple[str, str], rows: dict[str, str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD)
    table.add_column(columns[0], overflow="fold", no_wrap=True)
    table.add_column(columns[1], overflow="fold")
    for name, text in rows.items():
        table.add_row(name, text)
    Console().print(table, highlight=False)
