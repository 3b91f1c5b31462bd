"""`dign predict` as a user runs it."""

import io
import json
import os

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import dign.data
from dign.cli import main
from dign.cli.predict import _read_lines, make_table
from dign.runs.classifier import load_model
from dign.runs.predict import Prediction


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "digits"
    with pytest.raises(SystemExit) as stop:
        main(["train", "digits", "--size", "8", "--epochs", "4", "--batch-size", "128", "-q", "--out", str(path)])
    assert stop.value.code == 0
    return path


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The first test digits as files, and their names."""
    folder = tmp_path_factory.mktemp("pictures")
    split = dign.data.load("digits", size=8).test
    for index in range(12):
        pixels = split.images[index].permute(1, 2, 0).numpy()
        Image.fromarray(np.ascontiguousarray(pixels)).save(folder / f"{index:02}-{split.labels[index]}.png")
    return folder


@pytest.mark.slow
def test_a_folder_as_a_table_and_as_json_tell_the_same(dign_command, run_folder, pictures):
    code, out, _ = dign_command("predict", run_folder, pictures, "--draws", 10)
    assert code == 0 and "confidence" in out and " 0.3 " in out
    code, text, err = dign_command("predict", run_folder, pictures, "--draws", 10, "--json")
    document = json.loads(text)
    assert code == 0 and err == "" and document["draws"] == 10 and len(document["images"]) == 12
    for image in document["images"]:
        row = next(line for line in out.splitlines() if image["image"][-8:] in line)
        assert f"{100 * image['confidence']:.1f} %" in row
    right = sum(image["image"].endswith(f"-{image['label']}.png") for image in document["images"])
    assert right >= 9, "a trained model knows most of the digits that it is handed as files"


@pytest.mark.slow
def test_json_says_what_is_promised_how_surely_and_from_how_many_images(dign_command, run_folder, pictures):
    promise = ("--coverage", 0.8, "--sets", 0.9)
    code, text, _ = dign_command("predict", run_folder, pictures, "--draws", 2, "--json", *promise)
    document = json.loads(text)
    held = load_model(run_folder).calibrator.held_out
    assert code == 0 and document["promise"] == {
        "error": None,
        "certainty": None,
        "coverage": 0.8,
        "threshold": held.threshold(coverage=0.8),
        "sets": 0.9,
        "set_kind": "adaptive",
        "set_quantile": held.quantile(0.9, "adaptive"),
        "held_out_images": len(held),
    }


@pytest.mark.slow
def test_the_terminal_says_what_is_promised(dign_command, run_folder, pictures):
    code, out, err = dign_command("predict", run_folder, pictures, "--draws", 1, "--coverage", 0.8)
    threshold = load_model(run_folder).calibrator.held_out.threshold(coverage=0.8)
    answered = 12 - out.count("unsure")
    assert (
        code == 0 and f"Answered: {answered} of 12, those with a confidence of {100 * threshold:.1f} % or more" in err
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--sets", 0.999), "cannot be promised from 145 held-out images: promise less, or calibrate on at least 999."),
        (("--set-kind", "threshold"), "add --sets 0.9, or leave it out"),
    ],
)
def test_sets_that_cannot_be_made_are_one_sentence(dign_command, run_folder, pictures, words, sentence):
    code, out, err = dign_command("predict", run_folder, pictures, "--draws", 1, *words)
    assert code == 2 and out == "" and sentence in err


@pytest.mark.parametrize(("width", "levels"), [(120, 4), (80, 4), (60, 1), (50, 0)])
def test_a_narrow_table_keeps_the_answer_and_names_what_it_leaves_out(width, levels):
    stability = dict.fromkeys(("0.05", "0.1", "0.2", "0.3"), 1.0)
    predictions = [Prediction(f"a/long/path/to/photos/{n}.jpg", "Granny-Smith", 0.5, {}, stability) for n in (1, 22)]
    console = Console(width=width, file=io.StringIO())
    console.print(make_table(predictions, 10, width))
    lines = console.file.getvalue().splitlines()
    rows = [line for line in lines if "Granny-Smith" in line and "50.0 %" in line]
    assert max(map(len, lines)) <= width
    assert len(rows) == 2 and "photos/1.jpg" in rows[0] and "photos/22.jpg" in rows[1]
    assert [row.count("100 %") for row in rows] == [levels, levels]
    assert ("too narrow for" in " ".join(" ".join(lines).split())) == (levels < 4)


def test_files_that_cannot_be_read_are_all_named_and_can_be_left_out(dign_command, run_folder, pictures, tmp_path):
    good, *bad = tmp_path / "good.png", tmp_path / "text.jpg", tmp_path / "empty.png"
    good.write_bytes(next(pictures.iterdir()).read_bytes())
    for path in bad:
        path.write_text("")
    code, out, err = dign_command("predict", run_folder, tmp_path, "--draws", 2)
    assert code == 2 and out == "" and all(path.name in err for path in bad) and "--skip-bad" in err
    code, out, _ = dign_command("predict", run_folder, tmp_path, "--draws", 2, "--skip-bad", "--json")
    document = json.loads(out)
    assert code == 0 and [image["image"] for image in document["images"]] == [str(good)]
    assert document["skipped"] == sorted(map(str, bad))
    code, out, err = dign_command("predict", run_folder, *bad, "--skip-bad")
    assert code == 2 and "None of the 2 images can be read" in err


def test_paths_from_standard_input(dign_command, run_folder, pictures, monkeypatch):
    names = sorted(map(str, pictures.iterdir()))[:2]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(names) + "\n\n"))
    code, out, _ = dign_command("predict", run_folder, "-", "--json", "--draws", 2, "--sigma", "0,0.5")
    images = json.loads(out)["images"]
    assert code == 0 and [image["image"] for image in images] == names
    assert images[0]["stability"].keys() == {"0", "0.5"} and images[0]["stability"]["0"] == 1.0


def test_mistakes_get_one_sentence_and_code_2(dign_command, run_folder, pictures, tmp_path):
    (tmp_path / "text.jpg").write_text("not a picture")
    for args, sentence in (
        ((run_folder, tmp_path / "text.jpg"), "it is not an image in a known format"),
        ((run_folder, tmp_path / "missing.png"), "the file does not exist"),
        ((run_folder, pictures, "--sigma", "much"), "invalid --sigma 'much': expected noise levels"),
        ((tmp_path, pictures), "is not a model"),
        ((f"hub:{tmp_path}", pictures), "is not a model"),
    ):
        code, out, err = dign_command("predict", *args)
        assert code == 2 and out == "" and sentence in err and err.count("\n") == 1


def test_names_on_standard_input_may_be_any_bytes(tmp_path):
    stream = io.TextIOWrapper(io.BytesIO(b"caf\xe9.png\r\n\na b.png\n"), encoding="utf-8", errors="strict")
    assert [os.fsencode(name) for name in _read_lines(stream)] == [b"caf\xe9.png", b"a b.png"]
    assert _read_lines(io.StringIO("a.png\n")) == ["a.png"]
