"""Every command and every line of code in the README, and in the pages that it was split into, works as it stands."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

from dign.cli import main
from dign.models import build

ROOT = Path(__file__).parents[2]
README = "README.md"
PAGES = [README, "docs/command-line.md", "docs/cifar10-model.md"]


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)


def commands(word):
    lines = [line for page in PAGES for block in blocks(page, "bash") for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(f"{word} ")]


def run(*args):
    with pytest.raises(SystemExit) as stop:
        main(list(args))
    assert stop.value.code == 0, args


def test_the_make_targets_exist():
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = {words[1] for words in commands("make")}
    assert wanted == {"demo", "test"} and wanted <= targets


def test_it_is_short():
    assert len((ROOT / README).read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.slow
def test_the_loop_and_its_evaluation_run_as_written(capsys):
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 4))
    before = model[1].weight.clone()
    loader = [(torch.rand(6, 3, 32, 32), torch.randint(4, (6,))) for _ in range(2)]
    names = {"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "loader": loader}
    loop, evaluation = blocks(README, "python")
    exec(loop, names)
    assert not torch.equal(model[1].weight, before)
    images, labels = (torch.cat(parts) for parts in zip(*loader, strict=True))
    names["test_loader"] = DataLoader(TensorDataset(images, labels), batch_size=6)
    exec(evaluation, names)
    assert "%" in capsys.readouterr().out and 0 <= names["results"].mca_n <= 100


@pytest.mark.parametrize("page", PAGES[1:])
def test_the_code_of_the_other_pages_runs_as_written(page, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    for block in blocks(page, "python"):
        exec(block, {})


@pytest.mark.slow
def test_the_commands_run_as_written_only_smaller(tmp_path, monkeypatch):
    """In order, with options appended that make them small; CIFAR-10 is stood in for by the digits."""
    monkeypatch.chdir(tmp_path)
    for folder in ("experiments", "models"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    _photographs(tmp_path / "photos")
    (tmp_path / "picture.jpg").write_bytes((tmp_path / "photos" / "cat" / "0.jpg").read_bytes())
    torch.save(build("efficientnet_lite0", classes=1000, image_size=(128, 128)).state_dict(), "lite0.pth")
    few = ["--epochs", "1", "--batch-size", "64", "--quiet"]
    small = [*few, "--model", "tinynet"]
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
        if "runs/standard" in words and not (tmp_path / "runs" / "standard").exists():
            run("train", "digits", "--method", "standard", "--size", "16", *small, "--out", "runs/standard")
            run("evaluate", "runs/standard", "--only", "noise", "--severity", "5", "--quiet")
        more = few if "--init" in words else appended.get(verb, [])
        run(*words, *([] if "--resume" in words else more))
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
