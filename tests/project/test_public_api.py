"""What `import dign` offers: one list, loaded late, typed, documented, and shadowed by no subpackage."""

import ast
import doctest
import inspect
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import dign

ROOT = Path(__file__).parents[2]
PUBLIC = sorted(dign._PUBLIC)
PACKAGES = sorted({*dign.__all__} - {*PUBLIC, "__version__"})
REFERENCE = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.rst"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_dign_loads_little_and_no_other_library():
    loaded = python("import sys; before = {*sys.modules}; import dign; print(*{*sys.modules} - before)").split()
    assert {name for name in loaded if name.startswith("dign")} == {"dign", "dign.core", "dign.core.version"}
    assert {name.partition(".")[0] for name in loaded} <= {"dign", *sys.stdlib_module_names}
    assert len(loaded) <= 40


@pytest.mark.slow
def test_names_and_packages_are_there_without_another_import():
    code = "import dign; print(dign.DiGN().samples, dign.corruptions.family_of('fog'), {*dign.__all__} <= {*dir(dign)})"
    assert python(code) == "3 weather True\n"
    with pytest.raises(AttributeError, match="module 'dign' has no attribute 'DIGN'"):
        _ = dign.DIGN


def test_type_checkers_read_the_same_list():
    """The imports under TYPE_CHECKING say of every public name what `_PUBLIC` says."""
    (block,) = (
        node
        for node in ast.parse(Path(dign.__file__).read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    typed = {
        name.asname or name.name: (imported.module, name.name)
        for imported in block.body
        if isinstance(imported, ast.ImportFrom)
        for name in imported.names
    }
    assert [name for name, (module, _) in typed.items() if module == "dign"] == PACKAGES
    loaded = {}
    for name, place in dign._PUBLIC.items():
        module, _, attribute = place.removesuffix(f".{name}:").partition(":")
        loaded[name] = (module, attribute or name)
    assert {name: where for name, where in typed.items() if where[0] != "dign"} == loaded


def test_no_subpackage_has_the_name_of_something_public():
    """Importing `dign.x` sets the attribute `x` of `dign`, whatever was there before."""
    inside = {module.name for module in pkgutil.iter_modules(dign.__path__)}
    assert inside.isdisjoint(PUBLIC)
    before = {name: getattr(dign, name) for name in PUBLIC}
    for name in inside - {"__main__"}:
        import_module(f"dign.{name}")
    assert all(getattr(dign, name) is value for name, value in before.items())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(name):
    thing = getattr(dign, name)
    assert ">>> " in (inspect.getdoc(thing) or ""), f"{dign._PUBLIC[name]} has no example"
    if inspect.isfunction(thing):
        assert "Args:" in inspect.getdoc(thing) and "Returns:" in inspect.getdoc(thing), name


def test_the_reference_lists_every_public_name_once():
    listed = re.findall(r"^\.\. auto(?:class|function|module|exception):: ([\w.]+)$", REFERENCE, re.MULTILINE)
    modules = {name: place.rstrip(":") for name, place in dign._PUBLIC.items() if place.endswith(":")}
    wanted = {modules.get(name, f"dign.{name}") for name in PUBLIC}
    assert sorted(wanted - {*listed}) == []
    assert [name for name in listed if listed.count(name) > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_what_a_page_names_exists(page):
    """`dign.x` and `dign.x.y`, wherever documentation mentions them."""
    text = page.read_text(encoding="utf-8")
    for match in re.findall(r"(?<![\w./-])dign\.(?!md\b)([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?![\w/])", text):
        found = dign
        for part in match.split("."):
            if inspect.ismodule(found) and not hasattr(found, part):
                found = import_module(f"{found.__name__}.{part}")
            else:
                found = getattr(found, part)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "api").glob("*.rst")), ids=lambda page: page.stem)
def test_the_examples_of_the_reference_run(page):
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried and not failed
