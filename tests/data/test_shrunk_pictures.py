"""Shrunk pictures give the same crops as the files they come from, and are made once."""

import numpy as np
import pytest
from PIL import Image

from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data import shrunk_pictures
from dign.data.crops import RandomCrop
from dign.data.framing import Framing
from dign.data.pictures import Pictures
from dign.data.shrunk_pictures import shrink_pictures

CROP = RandomCrop(16)


@pytest.fixture
def large(tmp_path):
    """Three noisy JPEG files, a turned and an upright one among them, and a small PNG file."""
    pixels = np.random.default_rng(0).integers(0, 256, (3, 150, 200, 3), dtype=np.uint8)
    paths = [tmp_path / f"{number}.jpg" for number in range(3)]
    for path, each in zip(paths, pixels, strict=True):
        Image.fromarray(each).save(path)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels[0]).save(paths[0], exif=exif)
    Image.fromarray(pixels[0][:20, :30]).save(tmp_path / "small.png")
    return Pictures.from_paths([*paths, tmp_path / "small.png"])


def shrink(pictures, tmp_path, crop=CROP, **options):
    return shrink_pictures(pictures, crop, tmp_path / "root", ignore_progress, **options)


@pytest.mark.parametrize("fit", ["crop", "pad", "squash"])
def test_the_crops_are_the_same(large, tmp_path, fit):
    crop = RandomCrop(16, framing=Framing(fit))
    kept = shrink(large, tmp_path, crop)
    assert len(kept) == 4 and kept.path(0).suffix == ".bin"
    for number in range(4):
        for epoch in range(3):
            expected = crop.read(large.read(number), 0, epoch, number)
            assert np.array_equal(crop.read(kept.read(number), 0, epoch, number), expected), (number, epoch)


def test_they_are_made_once_and_again_when_a_file_changed(large, tmp_path, monkeypatch):
    first = shrink(large, tmp_path).path(0)
    with monkeypatch.context() as patched:
        patched.setattr(shrunk_pictures, "open_upright", None)  # to decode again would fail
        assert shrink(large, tmp_path).path(0) == first
    Image.new("RGB", (300, 300)).save(large.path(1))
    assert shrink(large, tmp_path).path(0) != first


def test_what_was_left_incomplete_is_made_again(large, tmp_path):
    kept = shrink(large, tmp_path)
    expected = kept.read(2)
    path = kept.path(0)
    path.write_bytes(path.read_bytes()[:100])
    assert shrink(large, tmp_path).read(2) == expected


def test_small_pictures_are_left_where_they_are(large, tmp_path, monkeypatch):
    assert shrink(large, tmp_path, RandomCrop(80)) is large
    assert shrink(large, tmp_path, cache="off") is large
    monkeypatch.setattr(shrunk_pictures, "MOST_OF_DISK", 0.0)
    assert shrink(large, tmp_path) is large and shrink(large, tmp_path, cache="on") is not large


def test_a_picture_that_cannot_be_read_is_named_and_nothing_is_kept(large, tmp_path):
    large.path(2).write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"2\.jpg cannot be read \(it is not an image"):
        shrink(large, tmp_path)
    assert list((tmp_path / "root").glob("*.bin")) == []
