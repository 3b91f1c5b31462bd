"""Starting and resuming: what cannot be trained is refused before anything is written, what is done stays as it is."""

import shutil
from contextlib import contextmanager

import pytest
import torch

import dign.training.train
from dign.core.errors import UserError
from dign.parallel.devices import check_compiler
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.training.train import resume, train

SMALL = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 128, "method": "dign"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "finished"
    train(SMALL, path, quiet=True)
    return path


def test_resuming_a_finished_run_changes_nothing(finished):
    before = (finished / "model.safetensors").stat().st_mtime_ns
    resume(finished, quiet=True)
    assert (finished / "model.safetensors").stat().st_mtime_ns == before


def test_a_run_that_another_process_finishes_meanwhile_is_left_as_it_is(finished, tmp_path, monkeypatch):
    path = tmp_path / "run"
    shutil.copytree(finished, path)
    (path / "model.safetensors").rename(tmp_path / "weights")

    @contextmanager
    def finished_by_another(folder):
        (tmp_path / "weights").rename(folder / "model.safetensors")
        yield

    monkeypatch.setattr(dign.training.train, "lock_run", finished_by_another)
    assert not load_run(path).finished
    assert resume(path, quiet=True).finished
    for name in ("metrics.jsonl", "model.safetensors", "run.json"):
        assert (path / name).read_bytes() == (finished / name).read_bytes()


def test_compiling_without_a_compiler_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="compile needs the C\\+\\+ compiler 'no-such-compiler'"):
        train({**SMALL, "compile": True, "device": "cpu"}, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.setenv("CC", "no-such-compiler-either")
    monkeypatch.setattr("dign.parallel.devices.find_spec", lambda name: name)
    with pytest.raises(UserError, match="compile needs the C compiler 'no-such-compiler-either'"):
        check_compiler(torch.device("cuda"))
    monkeypatch.setattr("dign.parallel.devices.find_spec", lambda name: None)
    with pytest.raises(UserError, match="needs Triton"):
        check_compiler(torch.device("cuda"))


@pytest.mark.slow
def test_settings_may_come_as_a_mapping_or_as_a_configuration(finished, tmp_path):
    run = train(RunConfig.from_mapping(SMALL), tmp_path / "run", quiet=True)
    assert (run.path / "model.safetensors").read_bytes() == (finished / "model.safetensors").read_bytes()


def test_parts_that_do_not_divide_the_batch_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"128 images cannot be cut into 3 equal parts.*`accumulate`"):
        train({**SMALL, "accumulate": 3}, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_precision_that_the_device_lacks_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    def conv2d(*args):
        raise RuntimeError("not implemented for 'Half'")

    monkeypatch.setattr(torch.nn.functional, "conv2d", conv2d)
    with pytest.raises(UserError, match="cannot compute in `precision=16`"):
        train({**SMALL, "precision": "16"}, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()
