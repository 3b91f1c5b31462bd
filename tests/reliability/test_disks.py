"""A disk that is full, and one that is read-only: one sentence, exit code 2, and what was there before stays."""

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from dign.corruptions.benchmark.read import open_benchmark
from dign.runs.folder import load_run

TRAIN = ["digits", "--size", "8", "--epochs", "1", "--batch-size", "256", "--method", "standard", "--track", "none"]


def _mount(*words) -> bool:
    return subprocess.run(["mount", *map(str, words)], capture_output=True).returncode == 0


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own, which can be made larger, or read-only."""
    place = tmp_path / "disk"
    place.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0 or not _mount("-t", "tmpfs", "-o", "size=400k", "none", place):
        pytest.skip("needs to mount a small disk, for which this user may not")

    def change(options: str) -> None:
        assert _mount("-o", f"remount,{options}", place)

    place_and_change = (place, change)
    try:
        yield place_and_change
    finally:
        subprocess.run(["umount", str(place)], check=True)


@contextmanager
def unchanged(folder):
    """Nothing in the folder may come, go or change."""
    before = contents(folder)
    yield
    assert contents(folder) == before


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_disk_that_fills_up_while_training(dign_command, disk, tmp_path):
    place, change = disk
    words = [*TRAIN, "--checkpoint-seconds", "0", "--quiet"]
    code, _, said = dign_command("train", *words, "--out", place / "run")
    assert code == 2 and "The disk is full" in said and said.count("\n") == 1, said
    names = {path.name for path in (place / "run").iterdir()}
    assert "checkpoint.safetensors" in names and not [name for name in names if name.endswith(".partial")]
    with unchanged(place / "run"):
        code, _, said = dign_command("train", "--resume", place / "run", "--quiet")
        assert code == 2 and "The disk is full" in said
    change("size=10m")
    assert dign_command("train", "--resume", place / "run", "--quiet")[0] == 0
    assert dign_command("train", *words, "--out", tmp_path / "calm")[0] == 0
    found, expected = ((where / "model.safetensors").read_bytes() for where in (place / "run", tmp_path / "calm"))
    assert found == expected


@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_a_disk_that_fills_up_while_a_benchmark_is_written(dign_command, disk, layout):
    place, change = disk
    words = ["corrupt", "digits", "--size", "8", "--only", "contrast", "--only", "fog", "--layout", layout, "--quiet"]
    words += ["--severity", "3", "--workers", "1", "--out", place / "made"]
    if layout == "npy":
        change("size=100k")
    code, _, said = dign_command(*words)
    assert code == 2 and "The disk is full" in said and said.count("\n") == 1, said
    assert not list((place / "made").rglob("*.partial")), "No half file is left, as the message says"
    change("size=20m")
    assert dign_command(*words)[0] == 0
    open_benchmark(place / "made", verify=True)


def test_a_read_only_disk(dign_command, disk):
    place, change = disk
    change("size=10m")
    assert dign_command("train", *TRAIN, "--out", place / "run", "--quiet")[0] == 0
    (place / "run" / "model.safetensors").rename(place / "run" / "checkpoint.safetensors")
    change("ro")
    commands = [
        ["train", *TRAIN, "--out", place / "new", "--quiet"],
        ["train", "--resume", place / "run", "--quiet"],
        ["corrupt", "digits", "--size", "8", "--only", "fog", "--severity", "1", "--out", place / "made", "--quiet"],
    ]
    with unchanged(place):
        for words in commands:
            code, _, said = dign_command(*words)
            assert code == 2 and "No permission" in said and said.count("\n") == 1, said
    change("rw")
    (place / "run" / "checkpoint.safetensors").rename(place / "run" / "model.safetensors")
    change("ro")
    assert load_run(place / "run").finished
    with unchanged(place):
        code, _, said = dign_command("evaluate", place / "run", "--only", "fog", "--severity", "1", "--quiet")
        assert code == 2 and "No permission" in said
