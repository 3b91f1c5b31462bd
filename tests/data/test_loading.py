"""Data sets are loaded by name; invalid arguments are refused."""

import pytest

import dign.data
from dign.core.errors import UserError


@pytest.fixture(scope="module")
def digits():
    return dign.data.load("digits", size=8)


@pytest.mark.parametrize("size", [0, -1, 5000, 2.5, True])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(UserError, match="invalid size"):
        dign.data.load("digits", size=size)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(UserError, match=r"Did you mean 'digits'.*cifar10.*folder:PATH"):
        dign.data.load("digit")


@pytest.mark.parametrize("validation", [-0.1, 1, 1.5, True, "0.1"])
def test_an_invalid_validation_fraction_is_refused(validation):
    with pytest.raises(UserError, match="invalid validation"):
        dign.data.load("digits", validation=validation)


def test_a_folder_without_its_prefix_is_recognized(tmp_path):
    with pytest.raises(UserError, match=f"use 'folder:{tmp_path}'"):
        dign.data.load(str(tmp_path))


def test_no_image_is_in_two_splits_and_the_seed_decides_which_are_cut():
    first, again, other = (dign.data.load("digits", size=8, validation_seed=seed) for seed in (0, 0, 1))
    rows = [image.numpy().tobytes() for split in (first.train, first.validation, first.test) for image in split.images]
    assert len(rows) == len(set(rows)) == 1797
    assert (first.validation.images == again.validation.images).all()
    assert len(first.validation) == len(other.validation)
    assert (first.validation.images != other.validation.images).any()
