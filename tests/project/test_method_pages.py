"""Every method has a page with the same headings, and its settings are those of the code."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from dign.methods import METHODS

PAGES = Path(__file__).parents[2] / "docs" / "methods"
HEADINGS = [
    "What it does", "Loss", "When to use it", "Settings", "Cost", "Deviations from the publication",
    "Numbers to expect",
]  # fmt: skip


@pytest.mark.parametrize("page", [*METHODS, "dign-augmix"])
def test_headings(page):
    assert re.findall(r"^## (.*)$", (PAGES / f"{page}.md").read_text(), re.MULTILINE) == HEADINGS


@pytest.mark.parametrize("key", METHODS)
def test_settings_and_defaults_and_cost(key):
    method = METHODS[key]()
    page = (PAGES / f"{key}.md").read_text()
    listed = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    assert listed.keys() == {spec.name for spec in fields(method)}
    for name, text in listed.items():
        if text.startswith("`"):
            assert eval(text.strip("`"), {}) == getattr(method, name), name
    cost = method.cost
    assert f"{cost.forward:g} forward and {cost.backward:g} backward" in page
    assert f"{cost.standard_steps:.1f} Standard" in page
