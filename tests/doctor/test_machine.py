"""What dign sees of a machine."""

import tomllib
from pathlib import Path

import torch

import dign.doctor.machine
import dign.models.libraries
from dign.doctor.machine import EXTRAS, describe_machine, describe_one

ROOT = Path(__file__).parents[2]


def test_every_extra_is_looked_for():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert EXTRAS.keys() == extras.keys() - {"dev", "docs"}


def test_the_cpu_is_always_there_and_names_its_precisions(monkeypatch, tmp_path):
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "not" / "yet"))
    machine = describe_machine()
    assert "32" in machine["devices"]["cpu"]["precisions"]
    assert machine["cache"]["folder"] == str(tmp_path / "not" / "yet") and machine["cache"]["writable"]
    assert machine["versions"]["torch"] == torch.__version__


def test_a_missing_compiler_is_a_reason(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    cpu = describe_one(torch.device("cpu"))
    assert not cpu["compiles"] and "no-such-compiler" in cpu["compile_problem"]


def test_an_extra_that_is_installed_and_cannot_be_imported_says_why(monkeypatch):
    def fail(name):
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr(dign.doctor.machine, "find_spec", lambda name: name == "torchvision")
    monkeypatch.setattr(dign.models.libraries, "import_module", fail)
    assert list(describe_machine()["broken_extras"]) == ["torchvision"]
    assert "operator torchvision::nms does not exist" in describe_machine()["broken_extras"]["torchvision"]
