"""Every code block of the tutorials runs, in order, as it stands."""

import re
import shlex
from pathlib import Path

import pytest

from dign.cli import main

pytestmark = pytest.mark.slow

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"


@pytest.mark.parametrize("page", sorted(TUTORIALS.glob("*.md")), ids=lambda page: page.stem)
def test_every_block_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    blocks = re.findall(r"^```(python|bash)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert {language for language, _ in blocks} == {"python", "bash"}
    for language, text in blocks:
        if language == "python":
            exec(compile(text, f"{page.name}, a block of Python", "exec"), names)
            continue
        for line in text.replace("\\\n", " ").splitlines():
            program, *arguments = shlex.split(line)
            assert program == "dign", line
            with pytest.raises(SystemExit) as stop:
                main(arguments)
            assert stop.value.code == 0, line
    assert (tmp_path / "report.html").stat().st_size > 10_000
