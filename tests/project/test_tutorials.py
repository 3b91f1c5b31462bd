"""Every code block of the tutorials and guides runs, in order, as it stands."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dign.cli import main

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
GUIDES = sorted((DOCS / "guides").glob("*.md"))
SLOW = {"gpus-and-clusters", "coming-from", "own-photographs"}
"""The first starts processes, the second makes all corruptions, the third exports a model."""
OTHER_FILES = {"toml": "settings.toml"}
"""Blocks that the page calls a file of this name."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A working directory with a photograph in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.jpg")
    return tmp_path


def blocks(page):
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```(python|bash|toml)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run_blocks(page):
    names = {"__name__": page.stem}
    for language, text in blocks(page):
        if language == "python":
            exec(compile(text, f"{page.name}, a block of Python", "exec"), names)
        elif language in OTHER_FILES:
            Path(OTHER_FILES[language]).write_text(text, encoding="utf-8")
        else:
            for line in text.replace("\\\n", " ").splitlines():
                run_line(line)


def run_line(line):
    program, *arguments = shlex.split(line)
    assert program == "dign", line
    if "--devices" in arguments:  # it starts itself again, which only a process of its own can
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([sys.executable, "-m", "dign", *arguments], check=True, env=environment, timeout=300)
        return
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 0, line


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_every_block_of_a_tutorial_runs(page, place, capsys):
    assert {language for language, _ in blocks(page)} == {"python", "bash"}
    run_blocks(page)
    assert (place / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else [], id=page.stem) for page in GUIDES],
)
def test_every_block_of_a_guide_runs(page, place, capsys):
    assert {language for language, _ in blocks(page)} & {"python", "bash"}
    run_blocks(page)
