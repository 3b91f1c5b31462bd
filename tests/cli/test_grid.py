"""`dign grid`: the plan without running it, and mistakes in one sentence."""

import pytest
import torch

from dign.cli import main

GRID = """
data = "digits"
size = 8
method = ["standard", "rse"]
epochs = 6
batch_size = 128
threads = 1
[evaluate]
only = "shot_noise"
severity = 3
"""


@pytest.mark.slow
def test_a_dry_run_shows_the_plan_and_writes_nothing(tmp_path, capsys):
    file = tmp_path / "grid.toml"
    file.write_text(GRID)
    with pytest.raises(SystemExit) as end:
        main(["grid", str(file), "--out", str(tmp_path / "runs"), "--dry-run"])
    assert end.value.code == 0
    said = capsys.readouterr().err
    assert "2 runs, 0 done. Left: 2 runs, 2.0 Standard-equivalents" in said and "about" in said
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--gpus", "1"], "--gpus is for Ray"),
        (["--only", "nothing"], "No run matches nothing"),
        (["--sensitivity"], "There is no sensitivity study to draw"),
        (["--out", "nowhere://x"], "Results cannot be written to nowhere://x"),
    ],
)
def test_mistakes_on_the_command_line(tmp_path, capsys, words, sentence):
    file = tmp_path / "grid.toml"
    file.write_text(GRID)
    with pytest.raises(SystemExit) as end:
        main(["grid", str(file), *words])
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert sentence in said and len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(("trains", "evaluates", "times"), [("32", "32", 0), ("bf16", "32", 1), ("bf16", "bf16", 1)])
def test_a_precision_that_this_cpu_emulates_is_said_once(tmp_path, capsys, monkeypatch, trains, evaluates, times):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True}, raising=False)
    file = tmp_path / "grid.toml"
    file.write_text(f'device = "cpu"\nprecision = "{trains}"\n{GRID}precision = "{evaluates}"\n')
    with pytest.raises(SystemExit) as end:
        main(["grid", str(file), "--out", str(tmp_path / "runs"), "--dry-run", "--no-measure"])
    assert end.value.code == 0
    assert capsys.readouterr().err.count("this CPU has no instructions for bfloat16") == times


def test_a_grid_for_a_gpu_that_this_machine_lacks_shows_its_plan(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True}, raising=False)
    file = tmp_path / "grid.toml"
    file.write_text(f'device = "cuda"\nprecision = "bf16"\n{GRID}')
    with pytest.raises(SystemExit) as end:
        main(["grid", str(file), "--out", str(tmp_path / "runs"), "--dry-run", "--no-measure"])
    said = capsys.readouterr().err
    assert end.value.code == 0 and "0 done" in said and "bfloat16" not in said
