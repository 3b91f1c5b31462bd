"""One version, the same for users, packages and citations."""

import re
from importlib.metadata import version
from pathlib import Path

from dign.core.version import __version__

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_installed_and_the_cited_one():
    assert version("dign") == __version__
    assert re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1] == __version__
