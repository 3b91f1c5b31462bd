"""`dign play`: its mistakes are one sentence each."""

import shutil
import socket

import pytest

from dign.cli import main


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("play") / "run"
    small = ["--model", "tinynet", "--size", "8", "--epochs", "1", "--batch-size", "256", "-q"]
    with pytest.raises(SystemExit) as stop:
        main(["train", "digits", "--method", "standard", *small, "--out", str(folder)])
    assert stop.value.code == 0
    return folder


def test_without_gradio_the_command_says_how_to_get_it(dign_command, run, monkeypatch):
    monkeypatch.setattr("dign.app.page.find_spec", lambda name: None)
    code, out, err = dign_command("play", run)
    assert code == 2 and out == "" and err.count("\n") == 1 and "pip install 'dign[play]'" in err


def test_mistakes_get_one_sentence_and_code_2(dign_command, run, tmp_path, monkeypatch):
    monkeypatch.setattr("dign.app.page.find_spec", lambda name: True)
    unfinished = tmp_path / "unfinished"
    shutil.copytree(run, unfinished)
    (unfinished / "model.safetensors").unlink()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for args, sentence in (
            ((run, "--port", taken.getsockname()[1]), "choose another, or 0 for any free one (--host, --port)"),
            ((unfinished, "--port", 0), "has not finished training"),
            ((tmp_path, "--port", 0), "is not a model"),
        ):
            code, out, err = dign_command("play", *args)
            assert code == 2 and out == "" and sentence in err and err.count("\n") == 1
