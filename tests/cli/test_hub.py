"""`dign hub save`: a run becomes a folder that other commands take."""

import json

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("huggingface_hub", reason="needs the extra dign[hub]")

from dign.runs.config import RunConfig
from dign.training.train import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "method": "rse", "batch_size": 128})
    return train(config, tmp_path_factory.mktemp("hub") / "run", quiet=True)


def test_a_saved_folder_predicts(run, tmp_path, dign_command):
    code, _, said = dign_command("hub", "save", run.path, tmp_path / "model")
    assert code == 0 and "Saved" in said and "no table: the run was not evaluated" in said
    Image.fromarray(np.zeros((9, 9, 3), dtype=np.uint8)).save(tmp_path / "a.png")
    code, out, _ = dign_command("predict", f"hub:{tmp_path / 'model'}", tmp_path / "a.png", "--json", "--draws", 2)
    assert code == 0 and json.loads(out)["images"][0]["label"] in run.classes


def test_quiet_says_nothing_and_an_existing_folder_is_refused(run, tmp_path, dign_command):
    assert dign_command("hub", "save", run.path, tmp_path / "model", "-q") == (0, "", "")
    code, out, said = dign_command("hub", "save", run.path, tmp_path / "model")
    assert code == 2 and out == "" and "exists already" in said and said.count("\n") == 1
