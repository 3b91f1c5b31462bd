import io
import os
import struct
import zlib

import numpy as np
import pytest
import torch
from PIL import Image

import dign.data
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.decoding import decode, read_upright_size
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
    with pytest.raises(UserError, match=r"from 6x12 to 8x8.*choose a size"):
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


def test_pictures_in_a_format_that_cannot_be_decoded_are_not_left_out_unsaid(photographs, tmp_path):
    (photographs / "train" / "red" / ".hidden.HEIC").write_bytes(b"")
    (photographs / "train" / "red" / "notes.txt").write_bytes(b"")
    load(photographs, tmp_path)
    (photographs / "train" / "red" / "IMG_1.HEIC").write_bytes(b"")
    with pytest.raises(UserError, match=r"red/IMG_1\.HEIC cannot be decoded: convert \.heic files to JPEG"):
        load(photographs, tmp_path)


def test_what_is_wrong_with_a_folder_is_said(photographs, tmp_path, save_image):
    (photographs / "train" / "green").mkdir()
    with pytest.raises(UserError, match=r"class folder .*train/green contains no images"):
        load(photographs, tmp_path)
    (photographs / "train" / "green").rename(photographs / "test" / "green")
    with pytest.raises(UserError, match="test/green is a class that the training images do not have"):
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


def test_a_grayscale_alpha_palette_cmyk_and_deep_image_become_rgb(tmp_path, save_image):
    def pixel(name, color, mode, **options):
        decoded = decode(save_image(tmp_path / name, color, mode=mode, **options))
        assert decoded.shape == (3, 8, 8)
        return decoded[:, 0, 0].tolist()

    assert pixel("gray.png", 77, "L") == [77, 77, 77]
    assert pixel("bilevel.png", 1, "1") == [255, 255, 255]
    assert pixel("deep.png", 65535, "I;16") == [255, 255, 255]
    assert pixel("deep2.png", 257 * 100, "I;16") == [100, 100, 100]
    assert pixel("opaque.png", (10, 20, 30, 255), "RGBA") == [10, 20, 30]
    assert pixel("clear.png", (10, 20, 30, 0), "RGBA") == [255, 255, 255]
    assert pixel("half.png", (0, 0, 0, 128), "RGBA") == [127, 127, 127]
    assert pixel("gray_clear.png", (10, 0), "LA") == [255, 255, 255]
    assert pixel("cmyk.tif", (0, 255, 255, 0), "CMYK") == [255, 0, 0]
    assert pixel("gray.jpg", 77, "L", quality=95) == [77, 77, 77]
    palette = Image.new("P", (8, 8), 1)
    palette.putpalette([0, 0, 0, 12, 34, 56])
    palette.save(tmp_path / "palette.png")
    assert decode(tmp_path / "palette.png")[:, 0, 0].tolist() == [12, 34, 56]
    palette.save(tmp_path / "transparent.png", transparency=1)
    assert decode(tmp_path / "transparent.png")[:, 0, 0].tolist() == [255, 255, 255]


def gray_tif(folder, values, kind):
    Image.fromarray(np.asarray([values], dtype=kind)).save(folder / "gray.tif")
    return folder / "gray.tif"


@pytest.mark.parametrize(
    ("values", "kind", "levels"),
    [
        ([0.0, 0.5, 1.0], "float32", [0, 128, 255]),
        ([0.0, 127.6, 255.0], "float32", [0, 128, 255]),
        ([0, 100, 255], "int32", [0, 100, 255]),
        ([0, 257 * 100, 65535], "int32", [0, 100, 255]),
        ([0, 100, 255], "uint16", [0, 0, 1]),
    ],
)
def test_gray_of_any_kind_becomes_eight_bits(tmp_path, values, kind, levels):
    assert decode(gray_tif(tmp_path, values, kind))[0, 0].tolist() == levels


@pytest.mark.parametrize(
    ("values", "kind", "sentence"),
    [
        ([0.0, float("nan")], "float32", "pixels that are not finite"),
        ([0.0, float("inf")], "float32", "pixels that are not finite"),
        ([-0.5, 0.5], "float32", "its pixels range from -0.5 to 0.5, outside 0 to 255"),
        ([0.0, 300.0], "float32", "its pixels range from 0 to 300, outside 0 to 255"),
        ([0, 70000], "int32", "its pixels range from 0 to 70000, outside 0 to 65535"),
    ],
)
def test_gray_that_cannot_be_understood_is_refused(tmp_path, values, kind, sentence):
    with pytest.raises(UserError, match=sentence):
        decode(gray_tif(tmp_path, values, kind))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_turns_the_image_upright(tmp_path, orientation):
    """Cameras store the sensor's picture and how to turn it; the eight ways, worked out with NumPy."""
    upright = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.T,
        6: np.rot90(upright),
        7: upright[::-1, ::-1].T,
        8: np.rot90(upright, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(np.ascontiguousarray(stored)).save(tmp_path / "a.png", exif=exif)
    assert np.array_equal(decode(tmp_path / "a.png")[0], upright)


def test_a_large_photograph_is_cropped_to_its_middle_and_antialiased(tmp_path):
    """A fine checkerboard of black and white shrinks to even gray; the colored borders of a wide picture go."""
    board = (np.indices((256, 256)).sum(0) % 2 * 255).astype(np.uint8)
    wide = np.zeros((256, 512, 3), np.uint8)
    wide[:, :, 0] = 255
    wide[:, 128:384] = board[:, :, None]
    Image.fromarray(wide).save(tmp_path / "wide.png")
    small = decode(tmp_path / "wide.png", size=16)[:, :, 1:-1].astype(int)
    assert small.min() > 118
    assert small.max() < 138


def test_jpegs_decoded_at_reduced_size_agree_with_full_ones(tmp_path):
    ramp = np.linspace(0, 255, 512).astype(np.uint8)
    picture = np.stack([np.tile(ramp, (512, 1)), np.tile(ramp, (512, 1)).T, np.full((512, 512), 99, np.uint8)], -1)
    Image.fromarray(picture).save(tmp_path / "a.jpg", quality=95)
    Image.fromarray(picture).save(tmp_path / "a.png")
    difference = np.abs(decode(tmp_path / "a.jpg", 32).astype(int) - decode(tmp_path / "a.png", 32))
    assert difference.max() <= 3


def test_a_tiny_file_that_claims_a_huge_picture_is_refused_before_it_is_decoded(tmp_path):
    """A PNG of 500 bytes whose header says 12 x 11 927 562: Pillow would decode it into 430 MB."""
    good = io.BytesIO()
    Image.new("RGB", (12, 10)).save(good, "PNG")
    header = b"IHDR" + struct.pack(">II", 12, 11_927_562) + good.getvalue()[24:29]
    bad = good.getvalue()[:12] + header + struct.pack(">I", zlib.crc32(header)) + good.getvalue()[33:]
    (tmp_path / "bomb.png").write_bytes(bad)
    for read in (decode, read_upright_size):
        with pytest.raises(UserError, match="decompression bomb: 143130744 pixels"):
            read(tmp_path / "bomb.png")
    plain = io.BytesIO()
    Image.new("1", (4200, 4200)).save(plain, "TIFF")  # an honest picture of more than 2^24 pixels
    (tmp_path / "plain.tiff").write_bytes(plain.getvalue())
    assert read_upright_size(tmp_path / "plain.tiff") == (4200, 4200)


def test_a_class_may_be_called_train(tmp_path, save_image):
    for name in ("plane", "train"):
        for index in range(5):
            save_image(tmp_path / "vehicles" / name / f"{index}.png")
    assert load(tmp_path / "vehicles", tmp_path).classes == ("plane", "train")
