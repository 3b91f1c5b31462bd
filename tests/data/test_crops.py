"""Random crops: their areas and shapes are as drawn, they lie in the picture, and they repeat themselves."""

import math

import numpy as np
import pytest
from PIL import Image

from dign.core.errors import UserError
from dign.data.crops import RandomCrop, make_draws
from dign.data.framing import PADDING, Framing


def boxes(crop, width, height, count=2000):
    return np.array([crop.draw_box(width, height, make_draws(0, 0, number)) for number in range(count)])


def test_areas_and_shapes_have_the_distribution_that_is_asked_for():
    """In a picture so wide that every crop fits: uniform areas, log-uniform shapes."""
    left, top, right, bottom = boxes(RandomCrop(32, scale=0.1, ratio=2.0), 400.0, 300.0).T
    inside = (left >= 0) & (top >= 0) & (right <= 400) & (bottom <= 300)
    assert inside.all()
    small = RandomCrop(32, scale=0.1, ratio=1.0)
    left, top, right, bottom = boxes(small, 300.0, 300.0).T
    areas = (right - left) * (bottom - top) / 300**2
    assert areas.min() >= 0.1 - 1e-9 and areas.max() <= 1
    assert abs(areas.mean() - 0.55) < 0.02 and abs(areas.std() - 0.9 / math.sqrt(12)) < 0.02
    assert np.allclose(right - left, bottom - top)
    free = left / (300 - (right - left) + 1e-9)
    assert abs(free.mean() - 0.5) < 0.03


def test_shapes_are_uniform_in_their_logarithm():
    tiny = RandomCrop(32, scale=1e-3, ratio=4.0)
    left, top, right, bottom = boxes(tiny, 1000.0, 1000.0).T
    small = (right - left) * (bottom - top) < 1e6 / 16  # none of these was refused for its shape
    shapes = np.log((right - left) / (bottom - top))[small] / math.log(4)
    assert shapes.min() >= -1 - 1e-9 and shapes.max() <= 1 + 1e-9
    assert abs(shapes.mean()) < 0.15 and abs(shapes.std() - 1 / math.sqrt(3)) < 0.08


def test_a_crop_that_never_fits_becomes_the_largest_that_does():
    panorama = RandomCrop(32, scale=1.0, ratio=1.5).draw_box(1000.0, 100.0, make_draws(0, 0, 0))
    left, top, right, bottom = panorama
    assert (top, bottom) == (0, 100) and right - left == pytest.approx(150)


def test_a_draw_depends_on_seed_epoch_and_number_alone():
    first = make_draws(1, 2, 3).random(4).tolist()
    assert make_draws(1, 2, 3).random(4).tolist() == first
    others = [make_draws(*key).random(4).tolist() for key in ((0, 2, 3), (1, 3, 3), (1, 2, 4))]
    assert first not in others and len(set(map(tuple, others))) == 3


def test_a_whole_picture_is_only_resized():
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 40, 3), dtype=np.uint8))
    crop = RandomCrop(20, scale=1.0, ratio=1.0).cut(picture, make_draws(0, 0, 0))
    assert np.array_equal(np.asarray(crop), np.asarray(picture.resize((20, 20), Image.Resampling.BICUBIC)))


def test_crops_of_a_padded_picture_may_show_the_padding_and_of_a_squashed_one_its_whole_width():
    picture = Image.new("RGB", (90, 30), "red")
    padded = np.asarray(RandomCrop(30, 1.0, 1.0, Framing("pad")).cut(picture, make_draws(0, 0, 0)))
    assert (padded[:8] == PADDING).all() and (padded[12:18] == (255, 0, 0)).all()
    squashed = np.asarray(RandomCrop(30, 1.0, 1.0, Framing("squash")).cut(picture, make_draws(0, 0, 0)))
    assert (squashed == (255, 0, 0)).all()


def test_a_large_picture_is_shrunk_before_the_crop_and_a_small_one_is_not():
    crop = RandomCrop(100)
    assert crop.shrink(Image.new("RGB", (4000, 3000))).size == (213, 160)
    assert crop.shrink(Image.new("RGB", (200, 150))).size == (200, 150)
    padded = RandomCrop(100, framing=Framing("pad"))
    assert padded.shrink(Image.new("RGB", (4000, 3000))).size == (160, 120)


def test_a_file_is_read_upright_and_refused_with_a_reason(tmp_path, save_image):
    crop = RandomCrop(16)
    pixels = crop.read(save_image(tmp_path / "plain.png", (9, 8, 7), (50, 30)), 0, 0, 0)
    assert pixels.shape == (3, 16, 16) and pixels[:, 5, 5].tolist() == [9, 8, 7]
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    with pytest.raises(UserError, match="not an image"):
        crop.read(tmp_path / "broken.jpg", 0, 0, 0)


@pytest.mark.parametrize("values", [{"scale": 0.0}, {"scale": 1.5}, {"ratio": 0.5}])
def test_impossible_crops_are_refused(values):
    with pytest.raises(UserError, match="random crops need a scale above 0"):
        RandomCrop(32, **values)
