"""Training curves and configurations."""

import json
import re

import pytest

from dign.report.html.page import build_page
from dign.report.html.run_sections import loss_curve, validation_curve
from dign.report.load import load_run
from dign.report.make import study_of


def test_training_curves_are_thinned_but_keep_their_ends(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a"))
    curve = loss_curve(run)
    assert 50 <= len(curve) <= 100 and curve[-1][0] == pytest.approx(12 - 1 / 25)
    losses = [record["loss"] for record in run.metrics if "loss" in record]
    assert curve[0][1] == pytest.approx(sum(losses[:3]) / 3)
    assert [epoch for epoch, _ in validation_curve(run)] == list(range(1, 13))


def test_configurations_of_every_run_are_on_the_page(demo_runs):
    page = build_page(study_of([demo_runs]))
    assert page.count("<details") == 4 and page.count("<dt>schedule</dt><dd>cosine</dd>") == 4


def test_the_folder_of_the_images_is_not_on_the_page(fake_run, tmp_path):
    folder = fake_run(tmp_path / "own")
    about = {**json.loads((folder / "run.json").read_text()), "folder": "/home/somebody/photographs"}
    (folder / "run.json").write_text(json.dumps(about))
    page = build_page(study_of([tmp_path]))
    assert "abc1234" in page and "somebody" not in page


def test_absolute_paths_are_not_on_the_page(fake_run, tmp_path):
    folder = fake_run(
        tmp_path / "a", config={"data": "folder:/home/ann/photos", "init": "/home/ann/weights.safetensors"}
    )
    info = {"command": ["dign", "train", "folder:/home/ann/photos", "--out=/home/ann/run", "--init", "s3://bucket/x"]}
    (folder / "run.json").write_text(json.dumps(info))
    page = build_page(study_of([tmp_path]))
    assert "ann" not in re.findall(r"[a-z]+", page) and "folder:photos" in page and "s3://bucket/x" in page
