"""The documentation hangs together where it is read as plain files; `make docs` checks the same for the site."""

import re
from pathlib import Path

import pytest

from dign.cli.commands import VERBS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """The anchors that a Git host and the site give to headings."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_page_that_the_site_lists(verb):
    name = {"corrupt": "corruptions"}.get(verb, verb)
    assert f"dign {verb}" in (DOCS / f"{name}.md").read_text(encoding="utf-8").splitlines()[0]
    assert f"\n{name}\n" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_every_guide_is_listed_and_linked_by_the_entry_page():
    entry = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "guides").glob("*.md"):
        assert f"\nguides/{page.stem}\n" in entry and f"(guides/{page.name})" in entry
