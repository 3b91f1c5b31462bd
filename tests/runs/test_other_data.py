"""A run is measured on other images, and on its own wherever they are now, never on those that it has seen."""

import numpy as np
import pytest
import torch
from PIL import Image

from dign.core.errors import UserError
from dign.evaluation.conditions import Conditions
from dign.evaluation.results import Results
from dign.evaluation.subjects import evaluate_run
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.runs.other_data import load_data_for
from dign.runs.seen_images import SEEN_FILE, digest_images
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
