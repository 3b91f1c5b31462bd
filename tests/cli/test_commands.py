"""The command line as a user types it: what it prints, where it writes, and what it refuses."""

import errno
import json
import shutil
import subprocess
import sys

import click
import pytest

from dign.cli import main
from dign.cli.commands import VERBS, cli
from dign.core.errors import UserError
from dign.evaluation.conditions import parse_severities
from dign.runs import checkpoints

QUICK = ["--size", "8", "--epochs", "1", "--batch-size", "256", "--quiet"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "dign"
    with pytest.raises(SystemExit) as stop:
        main(["train", "digits", "--method", "dign", "--samples", "2", *QUICK, "--out", str(path)])
    assert stop.value.code == 0
    return path


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(dign_command, verb):
    code, out, _ = dign_command(verb, "--help")
    assert code == 0 and "Examples:" in out and f"dign {verb}" in out


def test_help_needs_no_torch():
    """Half a second is not to be had with torch imported; this is what decides it."""
    lines = ["import sys", "from dign.cli import main"]
    for args in (["--help"], *([verb, "--help"] for verb in VERBS)):
        lines += ["try:", f"    main({args!r})", "except SystemExit as stop:", "    assert stop.code == 0"]
    check = "\n".join([*lines, "print('torch' in sys.modules)"])
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "False"


def test_importing_dign_needs_no_torch():
    check = "import sys, dign; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True).stdout == "False\n"


def test_names_for_help_match_the_registries():
    from dign.core import catalog as names
    from dign.methods import METHODS

    assert set(names.METHODS) == set(METHODS)


@pytest.mark.slow
def test_train_evaluate_and_report(dign_command, trained, tmp_path):
    assert "samples = 2" in (trained / "config.toml").read_text()
    code, out, err = dign_command("evaluate", trained, "--only", "noise", "--severity", "1,5", "--profile", "imagenet")
    assert code == 0 and "(3 corruptions) at severities 1, 5" in err and "mCA" not in err
    results = json.loads((trained / "results.json").read_text())
    head, *rows = out.strip().splitlines()
    assert head.split() == ["accuracy", "%", "at", "severity", "1", "5", "mean"]
    shot = [results["corruptions"]["shot_noise"]["severities"][level]["accuracy"] for level in "15"]
    assert rows[1].split() == ["shot_noise", *(f"{accuracy:.1f}" for accuracy in (*shot, sum(shot) / 2))]
    assert list(results["corruptions"]) == ["gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise"]
    assert list(results["corruptions"]["shot_noise"]["severities"]) == ["1", "5"]
    code, _, _ = dign_command("report", trained, "--out", tmp_path / "report.html")
    assert code == 0 and "<html" in (tmp_path / "report.html").read_text()
    assert results["images"]["raw"] is True, "with the confidences before its temperature"
    words = ("--only", "fog", "--severity", 1, "--profile", "imagenet", "--precision", "bf16", "-q")
    assert dign_command("evaluate", trained, *words)[:2] == (0, "")
    mixed = json.loads((trained / "results-precision-bf16.json").read_text())
    assert mixed["evaluation"]["precision"] == "bf16" and "precision" not in results["evaluation"]


def test_a_benchmark_is_read_at_the_severities_it_holds(dign_command, trained, tmp_path):
    folder = tmp_path / "digits-c"
    words = ("--only", "contrast", "--severity", "2,3", "--size", "8", "-q")
    assert dign_command("corrupt", "digits", "--out", folder, *words)[0] == 0
    (trained / "results.json").unlink(missing_ok=True)
    assert dign_command("evaluate", trained, "--benchmark", folder)[0] == 0
    results = json.loads((trained / "results.json").read_text())
    assert list(results["corruptions"]["contrast"]["severities"]) == ["2", "3"]
    code, _, err = dign_command("evaluate", trained, "--benchmark", folder, "--split", "validation")
    assert code == 2 and "test images" in err


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["trian"], "Did you mean 'train'"),
        (["train"], "Which data?"),
        (["train", "cifar01"], "Did you mean 'cifar10'"),
        (["train", "digits", "--method", "dgn"], "Did you mean 'dign'"),
        (["train", "digits", "--model", "resnet19"], "Did you mean 'resnet18'"),
        (["train", "digits", "--sigmamax", "1"], "Did you mean 'sigma-max'"),
        (["train", "digits", "--methd", "dign"], "no option --methd (did you mean --method?)"),
        (["train", "digits", "--batchsize", "8"], "did you mean --batch-size?"),
        (["train", "digits", "--method", "standard", "--weight", "1"], "Unknown option or setting of standard"),
        (["train", "digits", "--weight", "-1"], "dign: --weight must be a number of at least 0"),
        (["train", "digits", "--sigma-max", "much"], "dign: --sigma-max "),
        (["train", "digits", "--method", "dign+augmix", "--augmix.weight", "-1"], "dign: --augmix.weight must be"),
        (["hub", "save", "runs/a", "hub", "--out", "x"], "`dign hub save` has no option --out: see"),
        (["train", "digits", "--weight", "nan"], "weight must be a number of at least 0"),
        (["train", "digits", "--samples", "many"], "dign: --samples must be a whole number"),
        (["train", "digits", "--weight"], "needs a value"),
        (["train", "digits", "and", "more"], "one argument too many"),
        (["train", "--weight", "1", "digits", "more"], "'more' is one argument too many"),
        (["train", "--data", "digits"], "named without --data: `dign train digits`"),
        (["train", "--epoch", "3"], "did you mean --epochs?"),
        (["train", "--weight", "1"], "Which data?"),
        (["train", "digits", "--epochs", "-1"], "dign: --epochs must be at least 0"),
        (["train", "digits", "--device", "cuda:7"], "There is no device 'cuda:7' here: this machine has"),
        (["train", "digits", "--device", "abacus"], "There is no device 'abacus' here"),
        (["train", "nowhere.toml"], "Cannot read the configuration file"),
        (["train", "--resume", "nowhere"], "There is no run folder nowhere"),
        (["train", "--resume", "nowhere", "--lr", "1"], "drop --lr"),
        (["train", "digits", "--resume", "nowhere"], "drop digits"),
        (["train", "--resume", "nowhere", "--out", "elsewhere"], "drop --out"),
        (["evaluate", "nowhere"], "There is no run folder nowhere"),
        (["evaluate", "nowhere", "--only", "nois"], "Did you mean 'noise'"),
        (["evaluate", "nowhere", "--severity", "0-6"], "invalid severity"),
        (["evaluate", "nowhere", "--benchmark", "c", "--seed", "1"], "made already: drop --seed"),
        (["list", "everything"], "everything"),
    ],
)
def test_mistakes_get_one_sentence_and_code_2(dign_command, tmp_path, monkeypatch, args, sentence):
    monkeypatch.chdir(tmp_path)
    code, _, err = dign_command(*args)
    assert code == 2
    assert sentence in err and "Traceback" not in err
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".lock"]


def test_a_full_disk_is_named_as_such(dign_command, tmp_path, monkeypatch):
    def no_space(*args):
        raise OSError(errno.ENOSPC, "No space left on device", "somewhere/config.toml")

    monkeypatch.setattr("dign.runs.folder.write_text", no_space)
    code, _, err = dign_command("train", "digits", *QUICK, "--out", tmp_path / "run")
    assert code == 2 and "The disk is full" in err


def test_a_disk_that_fills_up_while_training_leaves_the_last_checkpoint(dign_command, tmp_path, monkeypatch):
    real, written = checkpoints.save_file, []

    def first_then_full(tensors, path, metadata):
        if written:
            path.write_bytes(b"half")
            raise checkpoints.SafetensorError("I/O error: No space left on device (os error 28)")
        written.append(real(tensors, path, metadata))

    monkeypatch.setattr(checkpoints, "save_file", first_then_full)
    run = tmp_path / "run"
    code, _, err = dign_command("train", "digits", *QUICK, "--checkpoint-seconds", "0", "--out", run)
    assert code == 2 and "The disk is full" in err and "checkpoint.safetensors" in err
    names = {path.name for path in run.iterdir()}
    assert "checkpoint.safetensors" in names and not any(name.endswith(".partial") for name in names)
    monkeypatch.undo()
    assert dign_command("train", "--resume", run, "--quiet")[0] == 0


def test_evaluating_an_unfinished_run_says_how_to_resume(dign_command, trained, tmp_path):
    shutil.copytree(trained, tmp_path / "copy")
    (tmp_path / "copy" / "model.safetensors").unlink()
    code, _, err = dign_command("evaluate", tmp_path / "copy", "--only", "noise")
    assert code == 2 and "dign train --resume" in err


def test_severities():
    assert parse_severities("1-3,5") == (1, 2, 3, 5)
    for wrong in ("0", "6", "", "a", "3-1"):
        with pytest.raises(UserError):
            parse_severities(wrong)


def test_commands_to_type_have_their_paths_in_quotes(dign_command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my run").mkdir()
    (tmp_path / "my run" / "config.toml").touch()
    code, _, err = dign_command("train", "digits", "--out", "my run")
    assert code == 2 and "`dign train --resume 'my run'`" in err


def _leaves(command, name="dign"):
    if not isinstance(command, click.Group):
        return {name: command}
    context = click.Context(command)
    inner = {each: command.get_command(context, each) for each in command.list_commands(context)}
    return {path: leaf for each, one in inner.items() for path, leaf in _leaves(one, f"{name} {each}").items()}


def test_every_command_has_quiet_and_json_where_they_mean_something():
    only_print = {
        "dign completion",
        "dign data cache",
        *(f"dign list {what}" for what in ("methods", "models", "data", "corruptions")),
    }
    options = {name: {flag for param in leaf.params for flag in param.opts} for name, leaf in _leaves(cli).items()}
    assert {name for name, flags in options.items() if "--quiet" not in flags} == only_print
    assert {name for name, flags in options.items() if "--json" not in flags} == {"dign completion", "dign play"}
