"""`dign evaluate`: its options, and what it prints."""

import json

import pytest
import torch

from dign.cli import main
from dign.evaluation.results import Results
from dign.training.train import train


def command(*args):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", *map(str, args)])
    return stop.value.code


def test_the_command_says_what_goes_with_what(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"")
    for args, sentence in (
        ([], "Say what to evaluate"),
        (["model.onnx"], "model.onnx is a file, but `dign evaluate` takes run folders: give the run"),
        (["model.onnx"], "type `dign evaluate --model model.onnx --data NAME`."),
        (["runs/a", "--model", "a:b"], "Say what to evaluate"),
        (["--model", "a:b"], "name them with --data"),
        (["runs/a", "--size", "8"], "--size belongs to --model"),
        (["runs/a", "--sequences", "--precision", "bf16"], "--precision does not apply to --attack"),
    ):
        assert command(*args) == 2
        assert sentence in capsys.readouterr().err


def test_json_has_the_calibrator_proper_scores_and_promises(dign_command, tmp_path):
    train({"data": "digits", "size": 8, "epochs": 2, "batch_size": 256}, tmp_path / "run", quiet=True)
    code, out, _ = dign_command("evaluate", tmp_path / "run", "--only", "shot_noise", "--severity", "3", "--json")
    (document,) = json.loads(out)
    assert code == 0
    results = Results.load(tmp_path / "run")
    assert document["calibrator"]["value"] == results.calibrator.value and "bins" not in document["calibrator"]
    assert document["calibrator"]["before"]["clean"]["ece"] == results.calibrator.calibration.clean.ece
    assert document["uncertainty"]["noise"]["nll"] == results.uncertainty.noise.nll
    kept = document["promises"]["kept"]["noise"]
    assert kept == results.corruptions["shot_noise"].severities[3].promises.to_json(), "one condition is its own pool"


def test_bfloat16_on_a_cpu_without_it_is_said_to_be_slow(dign_command, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True}, raising=False)
    run = train({"data": "digits", "size": 8, "epochs": 1, "precision": "bf16"}, tmp_path / "run", quiet=True)
    assert any("no instructions for bfloat16" in note for note in run.info["notes"])
    words = ("evaluate", run.path, "--only", "shot_noise", "--severity", "3", "--images", "20")
    code, _, err = dign_command(*words, "--precision", "bf16")
    assert code == 0 and "Slow: this CPU has no instructions for bfloat16" in err and "--precision 32 is faster" in err
    assert "Slow" not in dign_command(*words)[2]
