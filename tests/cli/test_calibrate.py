"""`dign calibrate` in a terminal: what it prints, and what it refuses."""

import json

import pytest
from click.testing import CliRunner

from dign.cli import calibrate
from dign.cli.commands import cli
from dign.runs.calibrate import ON
from dign.runs.calibrator import KINDS


def test_choices_are_those_of_the_library():
    assert calibrate.KINDS == KINDS and calibrate.ON == ON


@pytest.mark.slow
def test_a_model_that_has_seen_all_of_its_data_is_not_calibrated_on_it(tmp_path):
    from dign.training.train import train

    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}
    train({**settings, "validation": 0.0}, tmp_path / "all", quiet=True)
    refused = CliRunner().invoke(cli, ["calibrate", str(tmp_path / "all")])
    assert refused.exit_code == 2 and "--data folder:PATH" in refused.output
    assert not (tmp_path / "all" / "calibration.json").exists()
    train(settings, tmp_path / "run", quiet=True)
    done = CliRunner().invoke(cli, ["calibrate", str(tmp_path / "run"), "--kind", "histogram", "--json"])
    assert done.exit_code == 0 and json.loads(done.stdout)["kind"] == "histogram"
