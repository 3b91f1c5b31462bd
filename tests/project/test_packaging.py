"""The package as users get it: what is in the wheel, and that nothing needs an extra."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import dign

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def modules_of(requirements: list[str]) -> set[str]:
    """The names under which distributions are imported, where they differ from their own only in - and _."""
    renamed = {"pytest_xdist": "xdist", "scikit_learn": "sklearn", "pillow": "PIL"}
    names = {re.split(r"[\[<>=; ]", line)[0].replace("-", "_") for line in requirements}
    return {renamed.get(name, name) for name in names}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    pytest.importorskip("hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    inside = {name for name in wheel.namelist() if ".dist-info/" not in name}
    package = ROOT / "src"
    wanted = {path for path in (package / "dign").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert inside == {path.relative_to(package).as_posix() for path in wanted}
    data = {"dign/py.typed", "dign/corruptions/severities.json", "dign/report/html/page.css"}
    data |= {"dign/report/html/charts.css", "dign/report/html/templates/page.html", "dign/app/templates/answer.html"}
    data |= {"dign/data/sources/digits.npz", "dign/data/sources/digits.md"}
    assert data <= inside


def test_the_wheel_carries_version_command_license_and_only_the_core_as_requirements(wheel):
    (info,) = {name.partition("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    metadata = wheel.read(f"{info}/METADATA").decode()
    assert f"\nVersion: {dign.__version__}\n" in metadata
    assert "dign = dign.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert any("LICENSE" in name for name in wheel.namelist())
    plain = re.findall(r"^Requires-Dist: ([^;\n]+)$", metadata, re.MULTILINE)
    assert modules_of(plain) == modules_of(PROJECT["project"]["dependencies"])


@pytest.mark.slow
def test_every_public_name_loads_without_any_extra():
    extras = PROJECT["project"]["optional-dependencies"]
    blocked = modules_of([line for lines in extras.values() for line in lines if not line.startswith("dign[")])
    blocked -= modules_of(PROJECT["project"]["dependencies"])  # of which an extra may want a newer version
    assert {"ray", "scipy", "sklearn"} <= blocked
    code = f"""
import sys
sys.modules.update(dict.fromkeys({blocked!r}))  # None there: the import fails as if nothing were installed
import dign, dign.cli, dign.grid
for name in dign.__all__:
    getattr(dign, name)
"""
    python(code)


def test_every_core_dependency_and_extra_is_justified():
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w-]+)", page, re.MULTILINE))
    core = {re.split(r"[<>=]", line)[0] for line in PROJECT["project"]["dependencies"]}
    assert core | set(PROJECT["project"]["optional-dependencies"]) <= listed


def test_the_citation_names_this_version():
    assert f"\nversion: {dign.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_extra_that_is_mentioned_exists():
    pages = [path for folder in ("src", "docs", "examples") for path in (ROOT / folder).rglob("*.[pm][yd]")]
    named = {name for page in pages for name in re.findall(r"dign\[([a-z]+)\]", page.read_text(encoding="utf-8"))}
    assert "timm" in named and named <= set(PROJECT["project"]["optional-dependencies"])
