"""Noise levels that follow the size of the images."""

import numpy as np
import pytest
from PIL import Image

from dign.runs.config import RunConfig
from dign.runs.folder import make_run_method


def config(data="folder:x", **changes):
    return RunConfig.from_mapping({"data": data, **changes})


@pytest.mark.parametrize(("size", "expected"), [(16, 0.2), (32, 0.2), (40, 0.3), (64, 0.6), (128, 0.6)])
def test_sigma_max_follows_the_size_of_own_images(size, expected):
    assert make_run_method(config(size=size)).sigma_max == pytest.approx(expected)
    assert make_run_method(config(size=size, method="rse")).sigma == pytest.approx(expected / 2)
    assert make_run_method(config(size=size, method="dign-without-cr")).sigma_max == pytest.approx(expected)
    first, second = make_run_method(config(size=size, method="dign+augmix")).parts
    assert first.sigma_max == pytest.approx(expected) and not hasattr(second, "sigma_max")


def test_what_is_set_stays_and_published_data_keep_their_values():
    assert make_run_method(config(size=64, settings={"dign": {"sigma_max": 0.1}})).sigma_max == 0.1
    assert make_run_method(config(size=64, settings={"dign": {"weight": 1}})).weight == 1
    assert make_run_method(config("cifar10", size=64)).sigma_max == 0.2
    assert make_run_method(config("tiny-imagenet")).sigma_max == 0.6
    assert make_run_method(config("digits")).sigma_max == 0.2


def photographs(folder, counts, shape=(48, 60, 3)):
    random = np.random.default_rng(0)
    for level, (name, count) in zip((60, 180), counts.items(), strict=True):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            pixels = np.clip(random.normal(level, 40, shape), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{index}.png")


def test_the_size_is_looked_up_where_images_keep_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "cache"))
    photographs(tmp_path / "photos", {"cat": 6, "dog": 6})
    assert make_run_method(config(f"folder:{tmp_path / 'photos'}")).sigma_max == pytest.approx(0.4)
