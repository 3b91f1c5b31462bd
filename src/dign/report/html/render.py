"""Jinja templates with autoescape: whatever a template is given is text, unless it is markup made here."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from dign.report.analysis.claims import FAILS, PARTLY, PASSES, TOO_FEW, UNMEASURED, UNSURE
from dign.report.analysis.tables import Section, Table

VERDICT_CLASSES = {
    PASSES: "passes",
    FAILS: "fails",
    UNSURE: "unsure",
    TOO_FEW: "unsure",
    UNMEASURED: "unsure",
    PARTLY: "unsure",
}


@cache
def environment(package: str) -> Environment:
    """The templates in the folder `templates` of a package."""
    found = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.globals["verdict_classes"] = VERDICT_CLASSES
    found.filters["sections_apart"] = sections_apart
    return found


def render(template: str, *, package: str = "dign.report.html", **values: object) -> Markup:
    """Fill in a template."""
    return Markup(environment(package).get_template(template).render(**values))


def read_asset(name: str) -> Markup:
    """A style sheet or script of the report, as it goes into a page."""
    return Markup((files("dign.report.html") / name).read_text(encoding="utf-8"))


def sections_apart(table: Table) -> list[tuple[str | None, int | None, Table]]:
    """Each section of a long table as a table of its own, with its heading and its color."""
    parts = []
    for section in table.sections:
        rows = tuple(replace(row, slot=None) for row in section.rows)
        alone = replace(table, sections=(Section(None, rows),), caption="")
        parts.append((section.heading, section.rows[0].slot, alone))
    return parts
