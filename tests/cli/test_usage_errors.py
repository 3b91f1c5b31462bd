"""Whatever click finds wrong is one line with what to do, and exit code 2."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from dign.cli import main
from dign.cli.usage_errors import explain, name_options
from dign.core.errors import ResumableError, UserError, quote_path

SEE = ": see `dign {} --help`."


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["predict"], "`dign predict` needs MODEL" + SEE.format("predict")),
        (["predict", "run"], "`dign predict` needs IMAGE" + SEE.format("predict")),
        (["export", "run"], "`dign export` needs --out" + SEE.format("export")),
        (["completion"], "`dign completion` needs SHELL (bash, zsh or fish)" + SEE.format("completion")),
        (["predict", "r", "i", "--devic", "cpu"],
         "`dign predict` has no option --devic (did you mean --device?)" + SEE.format("predict")),
        (["evaluate", "-z"], "`dign evaluate` has no option -z" + SEE.format("evaluate")),
        (["train", "digits", "--schedule", "cosin"],
         "--schedule takes step, cosine, one-cycle or constant, not 'cosin' (did you mean 'cosine'?)"
         + SEE.format("train")),
        (["train", "digits", "--epochs", "ten"], "--epochs takes a whole number, not 'ten'" + SEE.format("train")),
        (["train", "digits", "--lr", "fast"], "--lr takes a number, not 'fast'" + SEE.format("train")),
        (["predict", "r", "i", "--draws", "0"],
         "--draws takes a whole number of at least 1, not '0'" + SEE.format("predict")),
        (["play", "run", "--port", "80a"],
         "--port takes a whole number from 0 to 65535, not '80a'" + SEE.format("play")),
        (["list", "models", "more"], "Got unexpected extra argument (more)" + SEE.format("list models")),
        (["train", "digits", "--out"], "Option '--out' requires an argument."),
        (["list", "model"], "Unknown command of `dign list` 'model'. Did you mean 'models'? "
         "Known: corruptions, data, methods, models."),
        (["hub", "load"], "Unknown command of `dign hub` 'load'. Known: save."),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(dign_command, args, line):
    assert dign_command(*args) == (2, "", f"dign: {line}\n")


@pytest.mark.parametrize("args", [[], ["list"], ["hub"], ["data"]])
def test_a_group_alone_shows_its_help(dign_command, args):
    code, out, err = dign_command(*args)
    assert (code, out) == (2, "") and err.startswith("Usage: dign") and "Commands:" in err


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA"), RuntimeError("can't allocate memory"), MemoryError()]
)
def test_too_little_memory_is_one_line(dign_command, monkeypatch, error):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr("dign.training.train.train", fail)
    code, _, said = dign_command("train", "digits", "--out", "nowhere")
    assert code == 2 and said.count("\n") == 1 and "try a smaller --batch-size" in said


def test_a_fault_of_the_program_is_not_taken_for_a_mistake(dign_command, monkeypatch):
    def fail(*args, **options):
        raise RuntimeError("a fault")

    monkeypatch.setattr("dign.training.train.train", fail)
    with pytest.raises(RuntimeError, match="a fault"):
        main(["train", "digits", "--out", "nowhere"])


def test_a_list_of_methods_in_a_file_for_one_run_is_one_line(dign_command, tmp_path):
    (tmp_path / "run.toml").write_text('data = "digits"\nmethod = ["dign"]\n')
    said = "dign: method must be text, not ['dign'].\n"
    assert dign_command("train", tmp_path / "run.toml", "--sigma-max", "0.1") == (2, "", said)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "digits", "--device", "cpu:7"), "There is one CPU, whatever its cores: use the device 'cpu'."),
        (("train", "digits", "--epochs", "9" * 20), "epochs must be below 2^63"),
        (("train", "pictures"), "use 'folder:pictures'"),
    ],
)
def test_one_sentence_and_no_folder(dign_command, tmp_path, monkeypatch, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    code, _, said = dign_command(*words, "--out", "run")
    assert code == 2 and sentence in said and said.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_terminal_without_all_letters_gets_question_marks():
    command = [sys.executable, "-c", "from dign.cli import main; main()"]
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([*command, "predict", "日本", "a.png"], env=latin, capture_output=True, encoding="latin-1")
    assert done.returncode == 2 and "Traceback" not in done.stderr and "??" in done.stderr


def test_a_name_like_an_option_is_typed_as_a_path():
    assert quote_path("-x") == "./-x" and quote_path("a b") == "'a b'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Try a smaller `lr` than 3.", "Try a smaller --lr than 3."),
        ("choose another `size`, `batch_size` or `model`.", "choose another --size, --batch-size or --model."),
        ('choose `preset="fast"`, or `freeze=body`', "choose --preset fast, or --freeze body"),
        ("`draws` is not an option of train, and `dign data fetch x` is a command", None),
    ],
)
def test_parameters_in_a_message_become_options(text, shown):
    from dign.cli.train import command

    assert name_options(text, command) == (shown or text)
    assert name_options(text, None) == text


def test_the_options_of_the_commands_in_a_group_are_known():
    from dign.cli.data import command

    assert name_options("set `size` or `validation_seed`", command) == "set --size or --validation-seed"


def test_a_run_that_can_be_resumed_has_its_command():
    error = ResumableError("It has not finished: resume it first.", Path("my run"))
    assert explain(error, None) == "It has not finished: resume it first. To resume: `dign train --resume 'my run'`."
    assert explain(UserError("No."), None) == "No."
