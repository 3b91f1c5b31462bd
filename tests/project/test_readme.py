"""Every command and every line of code in the README works as it stands."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from dign.cli import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands(word):
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(f"{word} ")]


def run(*args):
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    assert stop.value.code == 0, args


def test_the_make_targets_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = {words[1] for words in commands("make")}
    assert wanted == {"demo", "test"} and wanted <= targets


def test_the_loop_runs_as_written():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
    before = model[1].weight.clone()
    names = {
        "model": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loader": [(torch.rand(6, 3, 8, 8), torch.randint(4, (6,))) for _ in range(2)],
    }
    exec(blocks("python")[0], names)
    assert not torch.equal(model[1].weight, before)


def test_the_commands_run_as_written_only_smaller(tmp_path, monkeypatch):
    """In order, with options appended that make them small; CIFAR-10 is stood in for by the digits."""
    monkeypatch.chdir(tmp_path)
    for folder in ("experiments", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    _photographs(tmp_path / "photos")
    (tmp_path / "picture.jpg").write_bytes((tmp_path / "photos" / "cat" / "0.jpg").read_bytes())
    small = ["--epochs", "1", "--model", "tinynet", "--batch-size", "64", "--quiet"]
    appended = {
        "train": small,
        "evaluate": ["--only", "noise", "--severity", "5", "--quiet"],
        "corrupt": ["--only", "contrast"],
        "landscape": ["--images", "20", "--draws", "1"],
        "predict": ["--draws", "2"],
    }
    words_seen = set()
    for words in commands("dign"):
        verb = words[1]
        words_seen.add(verb)
        words = ["digits" if word == "cifar10" else word for word in words[1:]]
        if verb == "report":
            run("train", "digits", "--method", "standard", "--size", "16", *small, "--out", "runs/standard")
            run("evaluate", "runs/standard", "--only", "noise", "--severity", "5", "--quiet")
        run(*words, *([] if "--resume" in words else appended.get(verb, [])))
    assert {"train", "evaluate", "report", "corrupt", "landscape", "data", "list"} <= words_seen
    assert (tmp_path / "report.html").exists()


def _photographs(folder):
    """Two classes of photographs of mixed sizes."""
    random = np.random.default_rng(0)
    for name, level in (("cat", 60), ("dog", 180)):
        (folder / name).mkdir(parents=True)
        for index in range(12):
            shape = (70 + index, 90 - index, 3)
            pixels = np.clip(random.normal(level, 40, shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{index}.jpg")
