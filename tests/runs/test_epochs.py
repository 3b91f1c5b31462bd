"""Epochs follow the number of images where none are set."""

import pytest

from dign.runs.config import RunConfig
from dign.runs.epochs import FINE_TUNING, FROM_SCRATCH, choose_epochs, fill_epochs


@pytest.mark.parametrize("length", [FROM_SCRATCH, FINE_TUNING])
def test_in_between_there_are_as_many_steps_as_wanted_and_less_than_an_epoch_more(length):
    for images in (500, 1000, 1900):
        steps = choose_epochs(images, 32, length) * images / 32
        assert length.steps <= steps < length.steps + images / 32


@pytest.mark.parametrize("length", [FROM_SCRATCH, FINE_TUNING])
def test_there_are_never_too_few_nor_too_many(length):
    assert choose_epochs(10**6, 32, length) == length.fewest
    assert choose_epochs(5, 32, length) == choose_epochs(100, 32, length) == length.most


def test_epochs_that_are_set_stand():
    left_open = RunConfig.from_mapping({"data": "folder:x", "size": 128})
    assert left_open.epochs == 0 and fill_epochs(left_open, 345).epochs == choose_epochs(345, left_open.batch_size)
    given = RunConfig.from_mapping({"data": "folder:x", "size": 128, "epochs": 3})
    assert fill_epochs(given, 345) is given


def test_trained_weights_need_fewer():
    tuned = RunConfig.from_mapping({"data": "folder:x", "size": 128, "init": "x.pth"})
    assert fill_epochs(tuned, 345).epochs == choose_epochs(345, 32, FINE_TUNING) < choose_epochs(345, 32)
