"""`dign export`: what it says about the file it wrote."""

import pytest

from dign.runs.config import RunConfig
from dign.training.train import train


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "method": "rse", "batch_size": 128})
    return train(config, tmp_path_factory.mktemp("export") / "run", quiet=True)


@pytest.mark.slow
def test_the_difference_the_conditions_and_the_missing_average_are_named(run, tmp_path, dign_command):
    code, out, said = dign_command("export", run.path, "--out", tmp_path / "model.pt2", "--images", 2)
    assert code == 0 and out == "" and (tmp_path / "model.pt2").stat().st_size > 1000
    assert "of PyTorch's on 10 images (clean, shot_noise" in said and "averages several" in said


def test_another_suffix_is_one_sentence(run, tmp_path, dign_command):
    code, out, said = dign_command("export", run.path, "--out", tmp_path / "model.pth")
    assert code == 2 and out == "" and "expected a name in .onnx" in said and said.count("\n") == 1
