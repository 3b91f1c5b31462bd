"""Image files of every kind become uint8 RGB, and what cannot is refused with a reason."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from dign.core.errors import UserError
from dign.data.decoding import decode, read_upright_size


def gray_tif(folder, values, kind):
    Image.fromarray(np.asarray([values], dtype=kind)).save(folder / "gray.tif")
    return folder / "gray.tif"


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


def test_jpegs_decoded_at_reduced_size_agree_with_full_ones(tmp_path):
    ramp = np.linspace(0, 255, 512).astype(np.uint8)
    picture = np.stack([np.tile(ramp, (512, 1)), np.tile(ramp, (512, 1)).T, np.full((512, 512), 99, np.uint8)], -1)
    Image.fromarray(picture).save(tmp_path / "a.jpg", quality=95)
    Image.fromarray(picture).save(tmp_path / "a.png")
    difference = np.abs(decode(tmp_path / "a.jpg", (32, 32)).astype(int) - decode(tmp_path / "a.png", (32, 32)))
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
