import pytest
import torch
from torch.nn import functional

from dign.augment.geometry import warp
from dign.augment.train_transforms import TrainTransforms, alternating_flips
from dign.core.errors import UserError

OFF = {"crop": 0, "flip": False, "rotation": 0, "brightness": 0, "contrast": 0, "saturation": 0}


@pytest.fixture
def x():
    return torch.rand(64, 3, 10, 14, generator=torch.Generator().manual_seed(0))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_everything_off_changes_nothing(x):
    assert TrainTransforms(**OFF)(x, generator()) is x


def test_crop_and_flip_give_exactly_a_window_of_the_padded_image_or_its_mirror(x):
    moved = TrainTransforms(**OFF | {"crop": 2, "flip": True})(x, generator())
    padded = functional.pad(x, (2, 2, 2, 2))
    found = set()
    for image, out in zip(padded, moved, strict=True):
        windows = {
            (top, left, flip): image[:, top : top + 10, left : left + 14].flip(-1) if flip else
            image[:, top : top + 10, left : left + 14]
            for top in range(5) for left in range(5) for flip in (False, True)
        }  # fmt: skip
        matching = [key for key, window in windows.items() if torch.equal(window, out)]
        assert len(matching) == 1
        found |= {("top", matching[0][0]), ("left", matching[0][1]), ("flip", matching[0][2])}
    assert len(found) == 5 + 5 + 2, "each offset and both mirrors turn up among 64 images"


def test_rotation_turns_a_bright_dot_by_at_most_the_given_angle():
    x = torch.zeros(256, 3, 33, 33)
    x[:, :, 16, 31] = 1  # 15 pixels to the right of the center
    turned = TrainTransforms(**OFF | {"rotation": 20})(x, generator())[:, 0]
    weight = turned.sum((1, 2))
    rows = (turned.sum(2) * torch.arange(33)).sum(1) / weight - 16
    columns = (turned.sum(1) * torch.arange(33)).sum(1) / weight - 16
    angle = torch.rad2deg(torch.atan2(rows, columns))
    assert angle.abs().max() < 20.5
    assert angle.max() > 17 and angle.min() < -17
    torch.testing.assert_close((rows**2 + columns**2).sqrt(), torch.full((256,), 15.0), atol=0.6, rtol=0)


@pytest.mark.parametrize("name", ["brightness", "contrast", "saturation"])
def test_a_color_factor_is_the_textbook_one_per_image(x, name):
    out = TrainTransforms(**OFF | {name: 0.25})(x, generator(3))
    factor = 0.75 + 0.5 * torch.rand(64, 1, 1, 1, generator=generator(3))
    gray = (x * torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)).sum(1, keepdim=True)
    base = {"brightness": 0, "contrast": gray.mean((1, 2, 3), keepdim=True), "saturation": gray}[name]
    torch.testing.assert_close(out, (factor * x + (1 - factor) * base).clamp(0, 1), atol=1e-6, rtol=0)


def test_the_same_generator_gives_the_same_images_and_the_input_is_untouched(x):
    before = x.clone()
    first, again, other = (TrainTransforms()(x, generator(seed)) for seed in (1, 1, 2))
    assert torch.equal(x, before)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert first.min() >= 0 and first.max() <= 1


def test_negative_settings_are_refused_by_name():
    with pytest.raises(UserError, match="rotation"):
        TrainTransforms(rotation=-2)


def test_warp_samples_where_the_matrix_says():
    x = torch.arange(20.0).view(1, 1, 4, 5)
    shift = torch.tensor([[[1.0, 0, 1], [0, 1, -2]]])  # one column to the right, two rows up
    expected = torch.zeros(4, 5)
    expected[2:, :4] = x[0, 0, :2, 1:]
    assert torch.equal(warp(x, shift, mode="nearest")[0, 0], expected)


def test_alternating_flips_show_both_sides_of_every_image_in_two_epochs():
    first, second, third = (alternating_flips(1000, epoch, seed=3) for epoch in range(3))
    assert torch.equal(first, ~second) and torch.equal(first, third)
    assert 400 < first.sum() < 600
    assert not torch.equal(first, alternating_flips(1000, 0, seed=4))


def test_who_is_flipped_can_be_told():
    x = torch.rand(4, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    mirrored = torch.tensor([True, False, True, False])
    flipped = TrainTransforms(crop=0, rotation=0, brightness=0, contrast=0, saturation=0)(x, mirrored=mirrored)
    assert torch.equal(flipped[mirrored], x[mirrored].flip(-1))
    assert torch.equal(flipped[~mirrored], x[~mirrored])
