"""Pictures are the same from the cache and without it; what cannot be read, or changes meanwhile, is named."""

import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import dign.data
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data import picture_source
from dign.data.decoded_images import DecodedImages
from dign.data.framing import Framing


@pytest.fixture
def photographs(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (20, 30, 40, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        path = tmp_path / "photographs" / ("a", "b")[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(each).save(path)
    return tmp_path / "photographs"


def load(folder, tmp_path, **options):
    options = {"size": 16, "framing": Framing(crop_fraction=0.875), **options}
    return dign.data.load(f"folder:{folder}", root=tmp_path / "root", progress=ignore_progress, **options)


def test_pictures_without_the_cache_are_those_of_the_cache(photographs, tmp_path):
    cached, uncached = load(photographs, tmp_path, cache="on"), load(photographs, tmp_path, cache="off")
    assert isinstance(uncached.train.stored, DecodedImages) and not isinstance(cached.train.stored, DecodedImages)
    for name in ("train", "validation", "test"):
        one, other = getattr(cached, name), getattr(uncached, name)
        assert torch.equal(one.images, other.images) and torch.equal(one.labels, other.labels)
        assert [one.pictures.path(n) for n in range(len(one))] == [other.pictures.path(n) for n in range(len(other))]


def test_images_that_would_fill_the_disk_are_not_cached(photographs, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=4 * 20 * 3 * 16 * 16)
    monkeypatch.setattr(picture_source.shutil, "disk_usage", lambda path: usage)
    assert not isinstance(load(photographs, tmp_path).train.stored, DecodedImages)
    usage = usage._replace(free=4 * 20 * 3 * 16 * 16 - 1)
    assert isinstance(load(photographs, tmp_path).train.stored, DecodedImages)


@pytest.mark.parametrize("cache", ["on", "off"])
def test_unreadable_pictures_are_skipped_with_and_without_the_cache(photographs, tmp_path, cache):
    (photographs / "a" / "broken.jpg").write_bytes(b"nothing")
    data = load(photographs, tmp_path, cache=cache, skip_unreadable=True)
    assert data.skipped == ("a/broken.jpg",) and len(data.train.pictures) == len(data.train)
    names = {data.train.pictures.path(n).name for n in range(len(data.train))}
    assert "broken.jpg" not in names
    again = load(photographs, tmp_path, cache=cache, skip_unreadable=True)
    assert torch.equal(again.train.images, data.train.images)


def test_a_folder_that_changes_while_it_is_read_is_not_stored(photographs, tmp_path, monkeypatch):
    write = picture_source.write_pictures

    def write_meanwhile(*args):
        write(*args)
        shutil.copy(photographs / "a" / "00.png", photographs / "a" / "new.png")

    monkeypatch.setattr(picture_source, "write_pictures", write_meanwhile)
    with pytest.raises(UserError, match="has changed while it was read, and nothing was stored"):
        load(photographs, tmp_path)
    assert [path for path in (tmp_path / "root").iterdir() if path.is_dir()] == []
    monkeypatch.undo()
    assert len(load(photographs, tmp_path, validation=0).train) == 17


def test_a_picture_that_goes_away_while_it_is_read_is_a_change_too(photographs, tmp_path, monkeypatch):
    write = picture_source.write_pictures

    def remove_first(*args):
        (photographs / "b" / "01.png").unlink(missing_ok=True)
        write(*args)

    monkeypatch.setattr(picture_source, "write_pictures", remove_first)
    with pytest.raises(UserError, match="has changed while it was read"):
        load(photographs, tmp_path)


def test_pictures_that_are_enlarged_are_counted(photographs, tmp_path):
    Image.new("RGB", (12, 90)).save(photographs / "a" / "thin.png")
    assert load(photographs, tmp_path).enlarged == 1
    assert load(photographs, tmp_path, size=12).enlarged == 0


def test_an_unknown_kind_of_cache_is_refused(photographs, tmp_path):
    with pytest.raises(UserError, match="Unknown cache 'maybe'"):
        load(photographs, tmp_path, cache="maybe")
