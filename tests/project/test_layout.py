"""The layout of the project: few modules in the package root, layers that name every package, tests that mirror it."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "dign"
TESTS = ROOT / "tests"
SPANNING = ("gpu", "hosts", "project", "reliability")
"""Folders of tests that span the project."""
MIRRORED = sorted(path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] not in SPANNING)


def packages() -> set[str]:
    return {path.parent.name for path in PACKAGE.glob("*/__init__.py")}


def test_the_package_root_holds_at_most_six_modules():
    assert len(list(PACKAGE.glob("*.py"))) <= 6


def test_the_layers_name_every_package_once():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (each["layers"] for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "downward")
    named = [name.strip() for layer in layers for name in layer.split("|")]
    assert len(named) == len(set(named)) and set(named) == packages()


def test_every_package_says_what_it_holds():
    for folder in packages():
        first = (PACKAGE / folder / "__init__.py").read_text(encoding="utf-8").partition("\n")[0]
        assert first.startswith('"""'), folder


def test_the_guide_for_contributors_shows_every_package():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in sorted(packages()) if f"{name}/" not in guide] == []


def test_the_guide_for_contributors_names_files_that_exist():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:src|tests|docs)/[\w./-]*)`", guide)
    examples = {"src/dign/a/b.py", "tests/a/test_b.py"}
    assert len(named) > 30 and [path for path in named if path not in examples and not (ROOT / path).exists()] == []


def test_every_module_has_a_test_file():
    """src/dign/a/b.py has tests/a/test_b.py; a package's __init__.py may have one."""
    modules = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    missing = [str(path) for path in modules if not (TESTS / path.parent / f"test_{path.name}").is_file()]
    assert missing == []


@pytest.mark.parametrize("path", MIRRORED, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_a_test_file_names_a_module(path):
    """tests/a/test_b.py tests src/dign/a/b.py, and tests/a/test_a.py the package's own src/dign/a/__init__.py."""
    folder, name = PACKAGE / path.relative_to(TESTS).parent, path.stem.removeprefix("test_")
    module = folder / f"{name}.py"
    assert module.is_file() or (name == folder.name and (folder / "__init__.py").is_file()), module.relative_to(ROOT)
