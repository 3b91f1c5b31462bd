"""Templates escape what they are given."""

import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from dign.report.analysis.claims import PASSES
from dign.report.analysis.tables import Cell, Column, Row, Section, Table
from dign.report.html.render import environment, read_asset, render, sections_apart

EVIL = "<script>alert(1)</script>\"'>{{ 7 * 7 }}"


def show(table, call="table(one)"):
    source = "{% from 'macros.html' import table, section_tables %}{{ " + call + " }}"
    return environment("dign.report.html").from_string(source).render(one=table)


def test_a_table_of_hostile_names_is_text():
    cells = (Cell(EVIL), Cell("1.0", 1.0, 0.5, 3, True))
    columns = (Column(EVIL, EVIL, numeric=False), Column("b"))
    table = Table("key", EVIL, EVIL, EVIL, columns, (Section(EVIL, (Row(EVIL, cells, 3, EVIL),)),))
    for call in ("table(one)", "table(one, sortable=true, identifier='x')", "section_tables(one)"):
        html = show(table, call)
        assert "<script" not in html and "49" not in html and "&lt;script&gt;" in html


def test_the_best_is_strong_a_spread_is_shown_and_a_verdict_has_its_class():
    columns = (Column("a"), Column("b", numeric=False))
    row = Row("x", (Cell("91.5", 91.54321, 0.25, 3, True), Cell(PASSES)))
    html = show(Table("key", "t", "", "c", columns, (Section(None, (row,)),)))
    assert '<td class="num" data-value="91.543210"><strong>91.5</strong><span class="std"> ± 0.2</span></td>' in html
    assert f'<td class="text passes">{PASSES}</td>' in html


def test_what_a_template_is_not_given_is_an_error():
    with pytest.raises(UndefinedError):
        render("landscape.html")


def test_markup_stays_markup():
    page = environment("dign.report.html").from_string("{{ a }}{{ b }}")
    assert page.render(a=Markup("<b>"), b="<b>") == "<b>&lt;b&gt;"
    assert isinstance(read_asset("page.css"), Markup)


def test_sections_of_a_long_table_become_tables():
    rows = [Row(str(i), (Cell("1"),), slot=i) for i in range(2)]
    table = Table("key", "t", "caption", "c", (Column("a"),), tuple(Section(f"s{i}", (rows[i],)) for i in range(2)))
    parts = sections_apart(table)
    assert [(heading, slot) for heading, slot, _ in parts] == [("s0", 0), ("s1", 1)]
    assert all(part.caption == "" and len(part.rows) == 1 for _, _, part in parts)
