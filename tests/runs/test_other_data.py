"""A run is measured on other images, and on its own wherever they are now, never on those that it has seen."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

from dign.core.errors import UserError
from dign.data.dataset import join_splits
from dign.evaluation.conditions import Conditions
from dign.evaluation.results import Results
from dign.evaluation.subjects import evaluate_run
from dign.publish.hub import save_hub_folder
from dign.runs.calibrate import calibrate_model
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.runs.held_out import leave_out_seen
from dign.runs.other_data import load_data_for
from dign.runs.seen_images import SEEN_FILE, add_calibration_images, digest_images, read_calibration_images
from dign.training.train import train


def photographs(folder, count, seed=0, names=("cat", "dog"), prefix=""):
    random = np.random.default_rng(seed)
    for level, name in zip((60, 180), names, strict=True):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for index in range(count):
            pixels = np.clip(random.normal(level, 40, (10, 12, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{prefix}{index}.png")


@pytest.fixture
def run(tmp_path):
    photographs(tmp_path / "photos", 20)
    (tmp_path / "photos" / "cat" / "broken.png").write_bytes(b"")
    settings = {"data": f"folder:{tmp_path / 'photos'}", "size": 8, "preset": "laptop", "model": "tinynet", "epochs": 1}
    with pytest.raises(UserError, match=r"broken\.png cannot be read .*set `skip_unreadable` to leave it out"):
        train(RunConfig.from_mapping(settings), tmp_path / "run", quiet=True)
    return train(RunConfig.from_mapping({**settings, "skip_unreadable": True}), tmp_path / "run", quiet=True)


def test_images_are_known_again_wherever_they_are(run, tmp_path):
    assert run.info["skipped_images"] == ["cat/broken.png"] and "broken.png" in run.info["notes"][0]
    own = load_data_for(run)
    assert own.is_own and len(own.data.test) == 8 and len(own.data.train) + len(own.data.validation) == 32
    (tmp_path / "photos").rename(tmp_path / "moved")
    with pytest.raises(UserError, match=r"There is no folder .* name their folder: `data=folder:PATH`"):
        load_data_for(run)
    moved = load_data_for(run, f"folder:{tmp_path / 'moved'}")
    assert moved.is_own and torch.equal(moved.data.test.images, own.data.test.images)
    photographs(tmp_path / "moved", 5, seed=1, prefix="new")
    grown = load_data_for(run, f"folder:{tmp_path / 'moved'}")
    assert grown.left_out == 32 and len(grown.data.test) == 18, "eight of then, ten new ones"
    assert set(digest_images(own.data.test.images)) < set(digest_images(grown.data.test.images))
    assert len(grown.data.train) == len(own.data.train)


def test_a_run_is_not_calibrated_on_its_test_images_though_its_folder_has_grown(run, tmp_path):
    own = load_data_for(run).data
    photographs(tmp_path / "photos", 5, seed=1, prefix="new")
    grown = f"folder:{tmp_path / 'photos'}"
    calibrated = calibrate_model(run.path, grown, skip_unreadable=True)
    known = {*digest_images(own.train.images), *digest_images(own.test.images)}
    assert calibrated.calibrator.images == 10 + len(own.validation) and calibrated.left_out == len(known)
    assert not known & read_calibration_images(run.path)


def test_images_that_a_run_was_calibrated_on_are_in_no_split(run, tmp_path):
    own = load_data_for(run).data
    add_calibration_images(run.path, own.test.select(torch.arange(3)))
    left = load_data_for(run)
    assert left.is_own and left.left_out == 3 and torch.equal(left.data.test.images, own.test.images[3:])
    photographs(tmp_path / "other", 5, seed=2)
    name = f"folder:{tmp_path / 'other'}"
    every = load_data_for(run, name).data
    add_calibration_images(run.path, every.test.select(torch.arange(4)))
    found = load_data_for(run, name)
    assert found.left_out == 4 and not found.is_own and len(found.data.validation) == 0 and len(found.data.test) == 6


def test_a_hub_folder_is_not_measured_on_pictures_that_it_was_trained_on(run, tmp_path):
    """A folder whose test split holds five training, two validation and one test image of the run."""
    own = load_data_for(run).data
    hub = save_hub_folder(run, tmp_path / "hub")
    parts = [
        own.train.select(torch.arange(5)),
        own.validation.select(torch.arange(2)),
        own.test.select(torch.arange(1)),
    ]
    mixed = replace(own, test=join_splits(parts))
    left, count = leave_out_seen(hub, mixed, "test")
    assert count == 7 and torch.equal(left.test.images, own.test.images[:1])
    assert leave_out_seen(hub, own, "train")[1] == leave_out_seen(hub, own, "validation")[1] == 0
    with pytest.raises(UserError, match="trained or calibrated on all 5 test images"):
        leave_out_seen(hub, replace(own, test=parts[0]), "test")


def test_measuring_the_images_that_a_model_was_calibrated_on_is_said(tmp_path):
    settings = {"data": "digits", "size": 8, "epochs": 1, "batch_size": 256, "method": "standard"}
    run = train(settings, tmp_path / "run", quiet=True)
    told, fog = [], Conditions(corruptions=("fog",), severities=(1,))
    evaluate_run(run, fog, device="cpu", report=told.append)
    assert not any("calibrated" in sentence for sentence in told)
    evaluate_run(run, fog, device="cpu", split="validation", report=told.append)
    assert any("was calibrated on these images" in sentence for sentence in told)


def test_other_images_are_measured_beside_the_runs_own(run, tmp_path):
    photographs(tmp_path / "other", 3, seed=2)
    told, fog = [], Conditions(corruptions=("fog",), severities=(1,))
    own = evaluate_run(run, fog, device="cpu")
    results = evaluate_run(run, fog, device="cpu", data=f"folder:{tmp_path / 'other'}", report=told.append)
    assert results.evaluation.images == 6 and results.evaluation.left_out == 0 and results.run.data == "folder:other"
    assert "No image is left out" in told[0] and "results-other.json" in told[1]
    assert Results.load(run.path) == own and Results.load(run.path / "results-other.json") == results
    photographs(tmp_path / "birds", 3, names=("cow", "hen"))
    with pytest.raises(UserError, match=r"knows the classes cat, dog, but .* has cow, hen"):
        load_data_for(run, f"folder:{tmp_path / 'birds'}")


def test_a_run_without_digests_says_so_where_they_cannot_be_made(run, tmp_path):
    (run.path / SEEN_FILE).unlink()
    photographs(tmp_path / "other", 3, seed=2)
    name = f"folder:{tmp_path / 'other'}"
    assert load_data_for(load_run(run.path), name).left_out == 0, "its own data is where it was"
    (tmp_path / "photos").rename(tmp_path / "gone")
    with pytest.raises(UserError, match="keeps no digests of its training images"):
        load_data_for(run, name)
