import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import dign.data
import dign.data.sources.digits as module
from dign.core.progress import ignore_progress
from dign.data.sources.digits import Digits


@pytest.fixture(scope="module")
def digits():
    return dign.data.load("digits", size=8)


def test_the_pixels_are_scikit_learns_scaled_to_bytes(digits):
    values, labels = load_digits(return_X_y=True)
    expected = {
        ((255 - np.floor(row * 255 / 16 + 0.5)).astype(np.uint8).tobytes(), int(y))
        for row, y in zip(values, labels, strict=True)
    }
    found = set()
    for split in (digits.train, digits.validation, digits.test):
        assert torch.equal(split.images[:, 0], split.images[:, 1])
        assert torch.equal(split.images[:, 0], split.images[:, 2])
        found |= {(image[0].numpy().tobytes(), int(y)) for image, y in zip(split.images, split.labels, strict=True)}
    assert found == expected
    assert sum(map(len, (digits.train, digits.validation, digits.test))) == 1797


def test_a_fifth_is_for_testing_whatever_validation_takes(digits):
    other = dign.data.load("digits", size=8, validation=0.3, validation_seed=9)
    assert torch.equal(digits.test.images, other.test.images)
    assert abs(len(digits.test) - 1797 / 5) <= 5
    assert len(other.train) + len(other.validation) == len(digits.train) + len(digits.validation)
    assert not torch.equal(digits.train.labels, other.train.labels)


def test_the_default_size_is_16_and_keeps_the_brightness(digits):
    larger = dign.data.load("digits")
    assert larger.image_size == (16, 16)
    assert torch.equal(larger.test.labels, digits.test.labels)
    difference = larger.test.images.float().mean() - digits.test.images.float().mean()
    assert abs(difference) < 3  # bicubic overshoot is clipped at white, which darkens a little


def test_the_file_has_the_values_and_order_of_scikit_learns():
    values, labels = load_digits(return_X_y=True)
    images, found = module._load()
    assert np.array_equal(found, labels)
    for channel in range(3):
        assert np.array_equal(images[:, channel], np.floor(values * 255 / 16 + 0.5).reshape(-1, 8, 8))


def test_verify_knows_the_data():
    assert all(check.good for check in Digits().verify(None, ignore_progress))
