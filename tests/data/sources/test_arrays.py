import numpy as np
import pytest
import torch

import dign.data
from dign.core.errors import UserError

CLASSES = ["cat", "dog"]
LABELS = [0, 1] * 10


def make(images, labels=LABELS, **options):
    return dign.data.from_arrays("mine", images, labels, CLASSES, **options)


def test_both_orders_of_axes_floats_and_bytes_give_the_same():
    pixels = np.random.default_rng(0).integers(0, 256, (20, 3, 5, 7), dtype=np.uint8)
    variants = [
        pixels,
        pixels.transpose(0, 2, 3, 1),
        pixels / 255,
        (pixels / 255).astype(np.float32),
        torch.from_numpy(pixels),
    ]
    first, *others = [make(variant, validation=0) for variant in variants]
    assert first.image_size == (5, 7)
    for other in others:
        assert torch.equal(first.train.images, other.train.images)
        assert torch.equal(first.test.images, other.test.images)


def test_gray_images_get_three_channels():
    gray = np.arange(20 * 4, dtype=np.uint8).reshape(20, 2, 2)
    data = make(gray, test_images=gray, test_labels=LABELS, validation=0)
    assert torch.equal(data.test.images, torch.from_numpy(gray)[:, None].expand(-1, 3, -1, -1))


def test_given_test_images_are_the_test_split():
    train, test = np.zeros((20, 4, 4, 3), np.uint8), np.ones((2, 4, 4, 3), np.uint8)
    data = make(train, test_images=test, test_labels=[0, 1])
    assert (len(data.train), len(data.validation), len(data.test)) == (18, 2, 2)
    assert bool((data.test.images == 1).all())


def with_pixel(value):
    images = np.full((20, 3, 4, 4), 0.5)
    images[7, 1, 2, 3] = value
    return images


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [
        (with_pixel(np.nan), LABELS, "NaN"),
        (with_pixel(np.inf), LABELS, r"outside \[0,1\]"),
        (with_pixel(-0.01), LABELS, r"outside \[0,1\]"),
        (with_pixel(255.0), LABELS, "divide by 255"),
        (np.zeros((20, 3, 4, 4), np.int32), LABELS, "must be uint8"),
        (np.zeros((20, 5, 4, 4), np.uint8), LABELS, r"\(N,3,H,W\)"),
        (np.zeros((0, 3, 4, 4), np.uint8), [], "not empty"),
        (np.zeros((20, 3, 4, 4), np.uint8), LABELS[:-1], "one whole number each"),
        (np.zeros((20, 3, 4, 4), np.uint8), [0.5] * 20, "one whole number each"),
        (np.zeros((20, 3, 4, 4), np.uint8), [0, 2] * 10, r"outside 0\.\.1"),
        (np.zeros((20, 3, 4, 4), np.uint8), [0, -1] * 10, r"outside 0\.\.1"),
        (np.array([["a"]], dtype=object), LABELS, "not an array of numbers"),
    ],
)
def test_bad_arrays_are_refused_in_one_sentence(images, labels, sentence):
    with pytest.raises(UserError, match=sentence):
        make(images, labels)


def test_test_images_of_another_size_or_without_labels_are_refused():
    images = np.zeros((20, 3, 4, 4), np.uint8)
    with pytest.raises(UserError, match="same height"):
        make(images, test_images=np.zeros((2, 3, 5, 5), np.uint8), test_labels=[0, 1])
    with pytest.raises(UserError, match="together"):
        make(images, test_images=images)


def test_the_arguments_are_left_alone():
    images = np.full((20, 3, 4, 4), 0.5)
    before = images.copy()
    make(images)
    assert np.array_equal(images, before)
