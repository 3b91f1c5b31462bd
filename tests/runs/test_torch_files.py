"""Files of `torch.save`: what is found in them, and that nothing in them runs."""

import os
import pickle
import struct

import pytest
import torch
from torch import nn

import dign.runs.torch_files as torch_files
from dign.core.errors import UserError
from dign.runs.torch_files import read_torch_file

WEIGHTS = {"conv.weight": torch.arange(4.0), "conv.bias": torch.ones(2)}


def prefixed(prefix):
    return {f"{prefix}{name}": tensor for name, tensor in WEIGHTS.items()}


@pytest.mark.parametrize(
    "saved",
    [
        WEIGHTS,
        {"state_dict": WEIGHTS, "epoch": 3, "optimizer": {"lr": 0.1}},
        {"model": WEIGHTS, "args": {"lr": 0.1}},
        {"model_state": prefixed("module."), "scores": [1.0, 2.0]},
        {"model": {"state_dict": prefixed("_orig_mod.module.")}},
        prefixed("module._orig_mod."),
        {"state_dict": prefixed("model."), "pytorch-lightning_version": "2.0"},
    ],
)
@pytest.mark.parametrize("ending", ["pth", "bin"])
def test_the_usual_wrappers_and_prefixes_are_found(tmp_path, saved, ending):
    torch.save(saved, tmp_path / f"weights.{ending}")
    found = read_torch_file(tmp_path / f"weights.{ending}")
    assert found.keys() == WEIGHTS.keys() and all(torch.equal(found[name], WEIGHTS[name]) for name in WEIGHTS)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("was-run",)


def write(path, content):
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: torch.save({"model": WEIGHTS, "extra": Evil()}, path),
            r"wants more than tensors .*mkdir\), which",
        ),
        (lambda path: write(path, pickle.dumps(Evil())), "x.pth (wants more than tensors|is not a file of torch.save)"),
        (lambda path: torch.save(nn.Linear(2, 2), path), r"\(torch.nn.modules.linear.Linear\).*save the weights alone"),
        (lambda path: torch.jit.script(nn.Linear(2, 2)).save(path), "is a TorchScript archive, a program"),
        (lambda path: torch.save([1, 2], path), "has no weights in it: expected what torch.save"),
        (lambda path: torch.save({"model": {"name": "x"}}, path), "has no weights in it"),
        (lambda path: write(path, b""), "is not a file of torch.save, or is damaged"),
        (lambda path: write(path, b"PK\x03\x04" + b"\0" * 100), "is not a file of torch.save, or is damaged"),
        (lambda path: write(path, struct.pack("<q", 1000)), "is not a file of torch.save, or is damaged"),
        (lambda path: None, r"There is no file .*x.pth\.$"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of TorchScript
def test_anything_else_is_one_sentence_and_runs_nothing(tmp_path, monkeypatch, make, message):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "x.pth")
    with pytest.raises(UserError, match=message) as error:
        read_torch_file(tmp_path / "x.pth")
    assert "\n" not in str(error.value) and "weights_only" not in str(error.value)
    assert not (tmp_path / "was-run").exists()


def test_a_truncated_file_is_named(tmp_path):
    path = tmp_path / "x.pth"
    torch.save(WEIGHTS, path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"x.pth is not a file of torch.save, or is damaged"):
        read_torch_file(path)


def test_releases_of_torch_that_a_file_can_make_run_code_are_refused(tmp_path, monkeypatch):
    torch.save(WEIGHTS, tmp_path / "x.pth")
    monkeypatch.setattr(torch_files, "_torch_version", lambda: (2, 5))
    with pytest.raises(UserError, match=r"CVE-2025-32434\): install torch 2.6 or newer"):
        read_torch_file(tmp_path / "x.pth")
