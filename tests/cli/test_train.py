"""`dign train` as a user types it."""

import json

import pytest

from dign.cli.train import resolve
from dign.runs.calibrator import read_calibrator
from dign.runs.folder import load_run


def test_a_toml_file_describes_a_run_and_options_win(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text(
        'data = "digits"\nmethod = "dign"\nepochs = 7\nlr = 0.5\n[settings.dign]\nweight = 3\nsamples = 1\n'
    )
    config = resolve({"data": str(file), "lr": 0.25}, ["--sigma-max", "0.4", "--dign.samples=5"])
    assert (config.epochs, config.lr) == (7, 0.25)
    assert config.settings["dign"] == {"weight": 3, "samples": "5", "sigma_max": "0.4"}


def test_the_options_of_a_method_may_stand_before_the_data():
    after = resolve({"data": "digits"}, ["--sigma-max", "0.4", "--weight=2"])
    assert after.settings["dign"] == {"sigma_max": "0.4", "weight": "2"}
    assert resolve({"data": "--sigma-max"}, ["0.4", "digits", "--weight=2"]) == after
    assert resolve({"data": "--sigma-max"}, ["0.4", "--weight=2", "digits"]) == after


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("settings = 5", "settings must hold a table for each method"),
        ("[settings]\ndign = 5", "settings must hold a table for each method"),
        ('method = "augmix"\n[settings.augmix]\noperations = 5', "augmix.operations must be a list, not 5"),
        ("[settings.dign]\nlabel_smoothing = 1.5", "dign.label_smoothing must be at least 0 and below 1, not 1.5"),
    ],
)
def test_settings_of_the_wrong_kind_are_one_sentence(dign_command, tmp_path, text, sentence):
    (tmp_path / "run.toml").write_text(f'data = "digits"\n{text}\n')
    code, _, err = dign_command("train", tmp_path / "run.toml", "--out", tmp_path / "run")
    assert code == 2 and sentence in err and not (tmp_path / "run").exists()


QUICK = ("--size", "8", "--epochs", "1", "--batch-size", "256", "--method", "standard", "--track", "none")


def test_the_end_says_what_was_reached_and_what_to_type_next(dign_command, tmp_path):
    code, out, err = dign_command("train", "digits", *QUICK, "--out", tmp_path / "my run")
    accuracy = load_run(tmp_path / "my run").validation()["accuracy"]
    assert code == 0 and out == ""
    own = read_calibrator(tmp_path / "my run", 10)
    calibrated = f"calibrated by temperature {own.temperature:.2f}, fitted on 145 images of digits"
    assert f"validation accuracy {accuracy:.1f} % after epoch 1; {calibrated}. Saved in {tmp_path / 'my run'}" in err
    assert err.endswith(f"Next: dign evaluate '{tmp_path / 'my run'}'\n")


def test_the_outcome_as_json_and_nothing_else_when_quiet(dign_command, tmp_path):
    code, out, err = dign_command("train", "digits", *QUICK, "--out", tmp_path / "run", "--json", "--quiet")
    document = json.loads(out)
    assert code == 0 and err == "" and document["run"] == str(tmp_path / "run")
    assert document["validation"] == load_run(tmp_path / "run").validation() and document["seconds"] > 0


def test_notes_name_options_on_the_command_line(dign_command, tmp_path):
    _, _, err = dign_command("train", "digits", *QUICK, "--out", tmp_path / "run")
    assert "A smaller --batch-size gives more steps per epoch, a larger --epochs more epochs." in err
