"""Epochs follow the number of images where none are set."""

from dign.runs.config import RunConfig
from dign.runs.epochs import FEWEST, MOST, STEPS, choose_epochs, fill_epochs


def test_in_between_there_are_as_many_steps_as_wanted_and_less_than_an_epoch_more():
    for images in (320, 500, 1000, 1900):
        steps = choose_epochs(images, 32) * images / 32
        assert STEPS <= steps < STEPS + images / 32


def test_there_are_never_too_few_nor_too_many():
    assert choose_epochs(10**6, 32) == FEWEST and choose_epochs(5, 32) == choose_epochs(100, 32) == MOST


def test_epochs_that_are_set_stand():
    left_open = RunConfig.from_mapping({"data": "folder:x", "size": 128})
    assert left_open.epochs == 0 and fill_epochs(left_open, 345).epochs == choose_epochs(345, left_open.batch_size)
    given = RunConfig.from_mapping({"data": "folder:x", "size": 128, "epochs": 3})
    assert fill_epochs(given, 345) is given
