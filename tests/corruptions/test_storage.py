"""What the published benchmarks store, and the option that says otherwise."""

import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import PROFILES, STORED_QUALITY, corrupt
from dign.corruptions.jpeg import jpeg
from dign.corruptions.settings import PROFILE_NAMES
from dign.corruptions.storage import choose_quality, parse_jpeg


def test_every_profile_says_how_its_benchmark_is_stored():
    assert set(STORED_QUALITY) == set(PROFILE_NAMES)
    assert [choose_quality("profile", profile) for profile in PROFILES] == [None, 85, 85]
    assert choose_quality(None, "imagenet") is None and choose_quality(30, "imagenet") == 30


def test_the_step_comes_after_the_corruption():
    images = torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    plain = corrupt(images, "fog", 3, seed=5)
    assert torch.equal(corrupt(images, "fog", 3, seed=5, jpeg="profile"), jpeg(plain, 85))
    assert torch.equal(corrupt(images, "fog", 3, seed=5, jpeg=20), jpeg(plain, 20))
    assert torch.equal(corrupt(images, "fog", 0, jpeg="profile"), images), "clean images are not stored anew"


def test_the_step_smooths_noise_most_of_all_in_the_chroma():
    """On gray at severity 5 of shot noise: its deviation falls by more than a fifth, that of color by half and more."""
    gray = torch.full((8, 3, 64, 64), 128, dtype=torch.uint8)
    deviations = []
    for quality in (None, "profile"):
        noise = corrupt(gray, "shot_noise", 5, jpeg=quality).double() - 128
        deviations.append((float(noise.std()), float((noise[:, 0] - noise[:, 1]).std())))
    (plain, plain_color), (stored, stored_color) = deviations
    assert stored < 0.8 * plain and stored_color < 0.5 * plain_color


@pytest.mark.parametrize("text, value", [("profile", "profile"), ("none", None), ("85", 85), (60, 60)])
def test_the_option(text, value):
    assert parse_jpeg(text) == value


@pytest.mark.parametrize("text", ["0", "101", "best", "8.5", True])
def test_what_is_no_quality_is_an_error(text):
    with pytest.raises(UserError, match="from 1 to 100"):
        parse_jpeg(text)
