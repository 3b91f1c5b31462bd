"""Many pictures are decoded in order; one that cannot be is named."""

import pytest
from PIL import Image

from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.bulk_decoding import Picture, UnreadableImages, map_pictures, write_pictures
from dign.data.cache import create_store, open_store


def save(folder, shade, size=(6, 4)):
    path = folder / f"{shade}.png"
    Image.new("RGB", size, (shade, 0, 0)).save(path)
    return Picture(str(path), path, shade % 2)


def write(folder, pictures, size=(4, 6), report=ignore_progress):
    with create_store(folder / "store", name="x", classes=["even", "odd"], origin="here") as writer:
        write_pictures(writer, {"train": pictures, "test": pictures[:1]}, size, None, report)
    return open_store(folder / "store").read_splits()


def test_images_and_labels_are_stored_in_order_and_progress_counts_all_splits(tmp_path):
    told = []
    pictures = [save(tmp_path, shade) for shade in range(40)]
    splits = write(tmp_path, pictures, report=lambda what, done, total: told.append((done, total)))
    assert splits.train.images[:, 0, 0, 0].tolist() == list(range(40)) and splits.train.images.shape == (40, 3, 4, 6)
    assert splits.train.labels.tolist() == [0, 1] * 20 and len(splits.test) == 1
    assert told == [(done, 41) for done in range(1, 42)]


def test_a_picture_of_another_size_or_without_pixels_is_named_and_no_store_is_left(tmp_path):
    good = save(tmp_path, 1)
    with pytest.raises(UserError, match=r"The image .*2\.png cannot be read \(it is 4x5, not 4x6\)"):
        write(tmp_path, [good, save(tmp_path, 2, size=(5, 4))])
    broken = Picture("broken.png", b"not a picture", 0)
    with pytest.raises(UserError, match=r"The image broken\.png cannot be read .*: fix it or remove it"):
        write(tmp_path, [good, broken])
    assert open_store(tmp_path / "store") is None


def test_results_come_in_the_order_of_the_pictures(tmp_path):
    pictures = [Picture(str(number), b"", number) for number in range(300)]
    assert list(map_pictures(lambda picture: picture.label, pictures, {})) == list(range(300))


def test_all_pictures_that_cannot_be_read_are_listed_twenty_by_name(tmp_path):
    broken = [Picture(f"broken-{number}.png", b"not a picture", 0) for number in range(25)]
    with pytest.raises(UnreadableImages, match=r"^25 images cannot be read: broken-0\.png \(") as error:
        write(tmp_path, [save(tmp_path, 1), *broken])
    message = str(error.value)
    assert "broken-19.png" in message and "broken-20.png" not in message
    assert message.endswith("and 5 more: fix them or remove them.")
    assert list(error.value.reasons) == [picture.name for picture in broken]


def test_the_message_about_twenty_files_in_deep_folders_is_not_cut_off():
    message = str(UnreadableImages({f"{'deep/' * 50}{number}.png": "w" * 500 for number in range(30)}))
    assert message.endswith("and 10 more: fix them or remove them.") and "/19.png" in message
