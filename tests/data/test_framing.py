"""A picture of any shape becomes an image of one size: cut, padded or squashed."""

import numpy as np
import pytest
from PIL import Image

from dign.core.errors import UserError
from dign.data.framing import MIDDLE, PADDING, Framing, pad_to_square


@pytest.fixture
def wide():
    """300 x 200, its left half black and its right half white."""
    pixels = np.zeros((200, 300, 3), np.uint8)
    pixels[:, 150:] = 255
    return Image.fromarray(pixels)


def test_the_default_is_the_largest_square_in_the_middle(wide):
    pixels = np.asarray(MIDDLE.apply(wide, (20, 20)))
    assert pixels.shape == (20, 20, 3)
    assert (pixels[:, :9] == 0).all() and (pixels[:, 11:] == 255).all()


def test_the_middle_is_cut_out_of_the_resized_picture_as_torchvision_rounds_it():
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (200, 300, 3), dtype=np.uint8))
    resized = picture.resize((171, 114), Image.Resampling.BICUBIC)  # floor(100 / 0.875) = 114, and int(114 * 1.5)
    expected = np.asarray(resized)[7:107, 36:136]  # (114 - 100) / 2, and 35.5 rounded to even
    assert np.array_equal(np.asarray(Framing(crop_fraction=0.875).apply(picture, (100, 100))), expected)


def test_an_image_of_the_right_size_is_still_cut_where_a_fraction_is_wanted(wide):
    square = wide.crop((100, 0, 300, 200))  # a quarter black
    assert MIDDLE.apply(square, (200, 200)) is square
    cut = np.asarray(Framing(crop_fraction=0.5).apply(square, (200, 200)))
    assert (cut[:, :-1, 0] > 0).any() and cut[100, 0, 0] < cut[100, 10, 0] == 255


def test_padding_keeps_the_whole_picture_and_its_shape(wide):
    pixels = np.asarray(Framing("pad").apply(wide, (30, 30)))
    assert (pixels[:5] == PADDING).all() and (pixels[25:] == PADDING).all()
    assert (pixels[5:25, :13] == 0).all() and (pixels[5:25, 17:] == 255).all()


def test_squashing_keeps_the_whole_picture_and_nothing_else(wide):
    pixels = np.asarray(Framing("squash").apply(wide, (30, 30)))
    assert (pixels[:, :13] == 0).all() and (pixels[:, 17:] == 255).all()


def test_a_picture_smaller_than_the_image_is_enlarged():
    for framing in (MIDDLE, Framing(crop_fraction=0.875), Framing("pad"), Framing("squash")):
        assert framing.apply(Image.new("RGB", (5, 3), "red"), (64, 64)).size == (64, 64), framing


def test_every_framing_has_a_name_of_its_own():
    framings = [MIDDLE, Framing(crop_fraction=0.875), Framing(crop_fraction=0.9), Framing("pad"), Framing("squash")]
    framings += [Framing(interpolation="bilinear"), Framing("pad", interpolation="bilinear")]
    assert len({framing.key for framing in framings}) == len(framings) and MIDDLE.key == ""


def test_a_square_is_padded_on_both_sides():
    pixels = np.asarray(pad_to_square(Image.new("RGB", (2, 4), "red")))
    assert pixels.shape == (4, 4, 3)
    assert (pixels[:, [0, 3]] == PADDING).all() and (pixels[:, 1:3] == (255, 0, 0)).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"fit": "stretch"}, "Unknown fit 'stretch'"),
        ({"interpolation": "nearest"}, "Unknown interpolation"),
        ({"crop_fraction": 0.0}, "crop_fraction must be from 0.1 to 1"),
        ({"crop_fraction": 1.1}, "crop_fraction must be from 0.1 to 1"),
    ],
)
def test_a_wrong_value_is_named(values, message):
    with pytest.raises(UserError, match=message):
        Framing(**values)
