"""`dign corrupt`, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dign.cli import main
from dign.corruptions import FAMILIES, open_benchmark


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(words))
    return stop.value.code or 0


def test_a_data_set_becomes_a_benchmark(tmp_path: Path) -> None:
    folder = tmp_path / "digits-c"
    assert run("corrupt", "digits", "--out", str(folder), "--only", "noise", "--severity", "1,3", "--size", "8") == 0
    benchmark = open_benchmark(folder, verify=True)
    assert benchmark.names == FAMILIES["noise"] and benchmark.severities == (1, 3)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["data"] == "digits/test" and manifest["image_size"] == [8, 8]


def test_folders_are_named_after_classes(tmp_path: Path) -> None:
    words = ("--only", "contrast", "--severity", "2", "--layout", "folders", "--size", "8", "-q")
    assert run("corrupt", "digits", "--out", str(tmp_path / "c"), *words) == 0
    assert sorted(path.name for path in (tmp_path / "c/contrast/2").iterdir()) == [str(digit) for digit in range(10)]


@pytest.mark.slow
def test_a_picture_becomes_a_sheet(tmp_path: Path) -> None:
    picture, sheet = tmp_path / "in.png", tmp_path / "out.png"
    gradient = np.linspace(0, 255, 40 * 24 * 3).reshape(40, 24, 3).astype(np.uint8)
    Image.fromarray(gradient).save(picture)
    assert run("corrupt", str(picture), "--preview", str(sheet)) == 0
    pixels = np.asarray(Image.open(sheet))
    assert pixels.shape[0] > 19 * 150 and pixels.shape[1] > 6 * 150
    assert len(np.unique(pixels.astype(np.uint32) @ (1 << 16, 1 << 8, 1))) > 1000, "colors"


def test_a_sheet_has_what_was_asked_for_and_a_long_picture_has_one(tmp_path: Path, capsys) -> None:
    picture, sheet = tmp_path / "in.png", tmp_path / "out.png"
    Image.fromarray(np.zeros((20, 600, 3), np.uint8)).save(picture)
    words = ("--only", "noise", "--only", "fog", "--severity", "2,4")
    assert run("corrupt", str(picture), "--preview", str(sheet), *words) == 0
    assert "5 corruptions at severities 2, 4" in capsys.readouterr().err
    width, height = Image.open(sheet).size
    assert 3 * 160 < width < 190 + 4 * 168 and height < 300


@pytest.mark.parametrize(
    "words, message",
    [
        (("digits",), "either --out"),
        (("digits", "--out", "x", "--preview", "y.png"), "either --out"),
        (("nowhere.png", "--preview", "y.png"), "no picture nowhere.png"),
        (("nowhere.png", "--preview", "y"), "let it end in .png"),
        (("nowhere.png", "--preview", "y.png", "--size", "32"), "--size is for benchmarks of a data set"),
        (("digits", "--out", "x", "--only", "noize"), "Did you mean 'noise'"),
        (("digits", "--out", "x", "--severity", "7"), "invalid severity"),
        (("digts", "--out", "x"), "Did you mean 'digits'"),
    ],
)
def test_mistakes_end_with_code_two_and_a_sentence(words, message: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("corrupt", *words) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_picture_is_said_to_be_none(tmp_path: Path, capsys) -> None:
    path = tmp_path / "text.png"
    path.write_text("no picture")
    assert run("corrupt", str(path), "--preview", str(tmp_path / "out.png")) == 2
    assert "not an image" in capsys.readouterr().err


def test_a_sheet_does_not_replace_its_picture(tmp_path: Path, capsys) -> None:
    picture = tmp_path / "in.png"
    Image.fromarray(np.zeros((20, 20, 3), np.uint8)).save(picture)
    before = picture.read_bytes()
    assert run("corrupt", str(picture), "--preview", str(tmp_path / "." / "in.png")) == 2
    assert "would overwrite" in capsys.readouterr().err and picture.read_bytes() == before


def test_help_does_not_load_torch() -> None:
    program = (
        "import sys\nfrom dign.cli import main\n"
        "try: main(['corrupt', '--help'])\nexcept SystemExit: assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
