"""Images that a run has seen are known again by their pixels."""

import pytest
import torch

from dign.core.errors import UserError
from dign.data.dataset import DataSet, Split
from dign.runs.seen_images import (
    CALIBRATION_IMAGES_FILE,
    SEEN_FILE,
    add_calibration_images,
    digest_images,
    digest_seen,
    hash_split,
    read_calibration_images,
    read_seen,
    separate_seen,
    write_seen,
)


def split(*shades):
    return Split(
        torch.tensor(shades, dtype=torch.uint8).view(-1, 1, 1, 1).expand(-1, 3, 4, 4), torch.zeros(len(shades)).long()
    )


def data(train, validation, test):
    return DataSet("x", ("a", "b"), split(*train), split(*validation), split(*test))


def test_what_is_written_is_read_back_and_a_damaged_file_is_refused(tmp_path):
    assert read_seen(tmp_path) is None
    assert write_seen(tmp_path, data([1, 2], [3], [4])) == hash_split(split(1, 2)) != hash_split(split(2, 1))
    assert read_seen(tmp_path) == digest_seen(data([1, 2], [3], [4]))
    assert len({*digest_images(split(1, 2, 3, 4).images)}) == 4
    (tmp_path / SEEN_FILE).write_text("train xyz\n")
    with pytest.raises(UserError, match="the run folder is damaged"):
        read_seen(tmp_path)


def test_images_that_a_model_was_calibrated_on_are_added_to_those_before(tmp_path):
    assert read_calibration_images(tmp_path) == frozenset()
    add_calibration_images(tmp_path, split(1, 2))
    add_calibration_images(tmp_path, split(2, 3))
    assert read_calibration_images(tmp_path) == set(digest_images(split(1, 2, 3).images))
    assert read_seen(tmp_path) is None and [file.name for file in tmp_path.iterdir()] == [CALIBRATION_IMAGES_FILE]
    (tmp_path / CALIBRATION_IMAGES_FILE).write_text("validation 5d89f056865052bc\n")
    with pytest.raises(UserError, match="damaged"):
        read_calibration_images(tmp_path)


@pytest.mark.parametrize(("is_cut", "test", "left_out"), [(True, [3, 9, 8], 3), (False, [9], 2)])
def test_every_image_goes_where_the_run_had_it_and_new_ones_are_measured(is_cut, test, left_out):
    seen = digest_seen(data([1, 2], [4], [3]))
    found, left = separate_seen(data([3, 8], [1], [2, 4, 9]), seen, is_cut=is_cut)
    shades = {name: getattr(found, name).images[:, 0, 0, 0].tolist() for name in ("train", "validation", "test")}
    assert sorted(shades["train"]) == [1, 2] and shades["validation"] == [4] and sorted(shades["test"]) == sorted(test)
    assert left == left_out
