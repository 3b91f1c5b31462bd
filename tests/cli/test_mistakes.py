"""Whatever click finds wrong is one line with what to do, and exit code 2."""

import pytest

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
