import os

import numpy as np
import pytest
import torch
from PIL import Image

import dign.data
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.decoding import decode
from dign.data.loading import find_source


@pytest.fixture
def photographs(tmp_path, save_image):
    """train/ and test/ with a red and a blue class, all 8x8."""
    folder = tmp_path / "photographs"
    for split, count in (("train", 5), ("test", 2)):
        for index in range(count):
            save_image(folder / split / "red" / f"{index}.png", (250, 10 * index, 0))
            save_image(folder / split / "blue" / f"{index}.png", (0, 10 * index, 250))
    return folder


def load(folder, tmp_path, **options):
    return dign.data.load(f"folder:{folder}", root=tmp_path / "root", progress=ignore_progress, **options)


def stores(tmp_path):
    return [path for path in (tmp_path / "root").iterdir() if path.is_dir()]


def test_classes_are_sorted_and_images_are_in_order(photographs, tmp_path):
    data = load(photographs, tmp_path, validation=0)
    assert data.classes == ("blue", "red")
    assert data.train.labels.tolist() == [0] * 5 + [1] * 5
    assert data.train.images[:, :, 0, 0].tolist() == [[0, 10 * n, 250] for n in range(5)] + [
        [250, 10 * n, 0] for n in range(5)
    ]
    assert data.test.labels.tolist() == [0, 0, 1, 1]
    assert len(data.validation) == 0


def test_val_takes_the_place_of_test_and_beside_test_is_the_validation_split(photographs, tmp_path, save_image):
    (photographs / "test").rename(photographs / "val")
    data = load(photographs, tmp_path, validation=0.2)
    assert (len(data.train), len(data.validation), len(data.test)) == (8, 2, 4)
    save_image(photographs / "test" / "red" / "only.png", (1, 2, 3))
    data = load(photographs, tmp_path, validation=0.2)
    assert (len(data.train), len(data.validation), len(data.test)) == (10, 4, 1)
    assert data.test.images[0, :, 0, 0].tolist() == [1, 2, 3]


def test_one_folder_is_split_by_class_the_same_every_time(tmp_path, save_image):
    for index in range(10):
        save_image(tmp_path / "all" / "a" / f"{index}.png", (index, 0, 0))
        save_image(tmp_path / "all" / "b" / "deeper" / f"{index}.png", (index, 1, 0))
    data = load(tmp_path / "all", tmp_path, validation=0.25)
    assert data.test.labels.tolist() == [0, 0, 1, 1]
    assert data.validation.labels.tolist() == [0, 0, 1, 1]
    again = dign.data.load(f"folder:{tmp_path / 'all'}", root=tmp_path / "another", progress=ignore_progress)
    assert torch.equal(data.test.images, again.test.images)
    pixels = torch.cat([split.images for split in (data.train, data.validation, data.test)])[:, :2, 0, 0]
    assert sorted(map(tuple, pixels.tolist())) == [(n, label) for n in range(10) for label in (0, 1)]


def test_images_are_decoded_once_and_again_when_a_file_changed(photographs, tmp_path, monkeypatch, save_image):
    first = load(photographs, tmp_path)
    monkeypatch.setattr("dign.data.bulk_decoding.decode", None)  # to decode again would fail
    again = load(photographs, tmp_path)
    assert torch.equal(first.train.images, again.train.images)
    monkeypatch.undo()
    for change in ("contents", "time", "new", "removed", "renamed"):
        before = stores(tmp_path)
        file = photographs / "train" / "red" / "0.png"
        if change == "contents":
            save_image(file, (9, 9, 9), compress_level=0)
        elif change == "time":
            os.utime(file, ns=(10**18, 10**18))
        elif change == "new":
            save_image(photographs / "train" / "red" / "new.png", (7, 7, 7))
        elif change == "removed":
            (photographs / "train" / "red" / "new.png").unlink()
        else:
            (photographs / "train" / "red" / "1.png").rename(photographs / "train" / "red" / "renamed.png")
        before[0].with_name(f".{before[0].name}.partial").mkdir()  # as a process killed on the way leaves it
        load(photographs, tmp_path)
        assert len(stores(tmp_path)) == 1, "the stale copy goes"
        assert stores(tmp_path) != before, change
    assert load(photographs, tmp_path, validation=0).train.images[5, :, 0, 0].tolist() == [9, 9, 9]


def test_every_size_has_a_cache_of_its_own(photographs, tmp_path):
    load(photographs, tmp_path)
    data = load(photographs, tmp_path, size=4)
    assert data.image_size == (4, 4)
    assert len(stores(tmp_path)) == 2
    assert all(check.good for check in find_source(f"folder:{photographs}").verify(tmp_path / "root", ignore_progress))


def test_fetching_clears_a_damaged_cache_away(photographs, tmp_path):
    sound = load(photographs, tmp_path)
    (store,) = stores(tmp_path)
    with open(store / "test_images.npy", "r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x07")
    source = find_source(f"folder:{photographs}")
    assert not all(check.good for check in source.verify(tmp_path / "root", ignore_progress))
    source.fetch(tmp_path / "root", ignore_progress)
    again = load(photographs, tmp_path)
    assert all(check.good for check in source.verify(tmp_path / "root", ignore_progress))
    assert len(again.test) == len(sound.test)


def test_mixed_sizes_need_a_size(photographs, tmp_path, save_image):
    save_image(photographs / "train" / "red" / "wide.png", size=(12, 6))
    with pytest.raises(UserError, match=r"from 6x12 to 8x8.*choose a `size`"):
        load(photographs, tmp_path)
    assert stores(tmp_path) == []
    assert load(photographs, tmp_path, size=6).image_size == (6, 6)


def test_an_unreadable_image_is_named_and_nothing_is_left(photographs, tmp_path):
    bad = photographs / "test" / "blue" / "1.png"
    whole = bad.read_bytes()
    for contents in (
        b"",
        b"not an image",
        whole[: len(whole) // 2],
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n",
    ):
        bad.write_bytes(contents)
        for size in (None, 4):
            with pytest.raises(UserError, match=r"test/blue/1\.png cannot be read \("):
                load(photographs, tmp_path, size=size)
            assert stores(tmp_path) == []


def test_a_telephones_heic_files_are_read_where_the_library_for_them_is(photographs, tmp_path):
    import pillow_heif

    picture = Image.new("RGB", (8, 8), (30, 200, 90))
    pillow_heif.from_pillow(picture).save(str(photographs / "train" / "red" / "IMG_1.HEIC"), quality=100)
    data = load(photographs, tmp_path, validation=0)
    assert len(data.train) == 11
    difference = data.train.images[-1].float().mean((-2, -1)) - torch.tensor([30.0, 200, 90])
    assert difference.abs().max() < 6


def test_pictures_in_a_format_that_cannot_be_decoded_are_not_left_out_unsaid(photographs, tmp_path, monkeypatch):
    monkeypatch.setattr("dign.data.decoding.load_heif", lambda: False)
    (photographs / "train" / "red" / ".hidden.HEIC").write_bytes(b"")
    (photographs / "train" / "red" / "notes.txt").write_bytes(b"")
    load(photographs, tmp_path)
    (photographs / "train" / "red" / "IMG_1.HEIC").write_bytes(b"")
    (photographs / "train" / "red" / "cut.jpg").write_bytes(b"")
    with pytest.raises(UserError, match=r"red/IMG_1\.HEIC \(install the library pillow-heif, or convert it to JPEG\)"):
        load(photographs, tmp_path)
    (photographs / "train" / "red" / "cut.jpg").unlink()
    with pytest.raises(UserError, match=r"red/IMG_1\.HEIC cannot be read \(install the library pillow-heif, or conv"):
        load(photographs, tmp_path)


@pytest.mark.parametrize("size", [None, 4])
def test_unreadable_images_are_listed_together_and_can_be_skipped(photographs, tmp_path, size):
    whole = load(photographs, tmp_path, size=size)
    good = (photographs / "test" / "blue" / "1.png").read_bytes()
    (photographs / "test" / "blue" / "broken.png").write_bytes(b"")
    (photographs / "train" / "red" / "cut.png").write_bytes(good[: len(good) // 2])
    (photographs / "train" / "red" / "link.png").symlink_to("nowhere.png")
    (photographs / "train" / "red" / "phone.heic").write_bytes(b"")
    names = ["train/red/cut.png", "train/red/link.png", "train/red/phone.heic", "test/blue/broken.png"]
    for _ in range(2):
        with pytest.raises(UserError, match=r"^4 images cannot be read: ") as error:
            load(photographs, tmp_path, size=size)
        assert all(name in str(error.value) for name in names)
        assert str(error.value).endswith("fix them or remove them, or set `skip_unreadable` to leave them out.")
        rest = load(photographs, tmp_path, size=size, skip_unreadable=True)  # and the next refusal is from its cache
        assert sorted(rest.skipped) == sorted(names) and whole.skipped == ()
        for split in ("train", "validation", "test"):
            assert torch.equal(getattr(rest, split).images, getattr(whole, split).images)


def test_skipping_an_image_is_as_if_it_were_not_there(tmp_path, save_image):
    folder = tmp_path / "single"
    for name in "ab":
        for number in range(10):
            save_image(folder / name / f"{number}.png", (number, 0, 0))
    before = load(folder, tmp_path)
    (folder / "a" / "00.png").write_bytes(b"")
    skipping = load(folder, tmp_path, skip_unreadable=True)
    assert torch.equal(skipping.test.images, before.test.images), "the split is that of the images that can be read"
    for number in range(10):
        (folder / "a" / f"{number}.png").write_bytes(b"")
    with pytest.raises(UserError, match="a contains no images that can be read"):
        load(folder, tmp_path, skip_unreadable=True)


def test_what_is_wrong_with_a_folder_is_said(photographs, tmp_path, save_image):
    (photographs / "train" / "green").mkdir()
    with pytest.raises(UserError, match=r"class folder .*train/green contains no images"):
        load(photographs, tmp_path)
    (photographs / "train" / "green").rename(photographs / "test" / "green")
    with pytest.raises(UserError, match=r"green in .*test is a class that the training images do not have"):
        load(photographs, tmp_path)
    (photographs / "test").rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="neither test/ nor val/"):
        load(photographs, tmp_path)
    with pytest.raises(UserError, match="at least two folders"):
        load(photographs / "train" / "red", tmp_path)
    with pytest.raises(UserError, match="no folder"):
        load(photographs / "nowhere", tmp_path)
    with pytest.raises(UserError, match="no folder"):
        dign.data.load("folder:")
    save_image(tmp_path / "single" / "a" / "0.png")
    save_image(tmp_path / "single" / "b" / "0.png")
    with pytest.raises(UserError, match="too few images"):
        load(tmp_path / "single", tmp_path)


def test_names_cannot_write_to_the_terminal(tmp_path, save_image):
    for name in ("a\x1b[31m", "b\n"):
        for index in range(3):
            save_image(tmp_path / "all" / name / f"{index}.png")
    assert load(tmp_path / "all", tmp_path).classes == ("a\ufffd[31m", "b\ufffd")


def test_a_large_photograph_is_cropped_to_its_middle_and_antialiased(tmp_path):
    """A fine checkerboard of black and white shrinks to even gray; the colored borders of a wide picture go."""
    board = (np.indices((256, 256)).sum(0) % 2 * 255).astype(np.uint8)
    wide = np.zeros((256, 512, 3), np.uint8)
    wide[:, :, 0] = 255
    wide[:, 128:384] = board[:, :, None]
    Image.fromarray(wide).save(tmp_path / "wide.png")
    small = decode(tmp_path / "wide.png", size=(16, 16))[:, :, 1:-1].astype(int)
    assert small.min() > 118
    assert small.max() < 138


def test_a_class_may_be_called_train(tmp_path, save_image):
    for name in ("plane", "train"):
        for index in range(5):
            save_image(tmp_path / "vehicles" / name / f"{index}.png")
    assert load(tmp_path / "vehicles", tmp_path).classes == ("plane", "train")
