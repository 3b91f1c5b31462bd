import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from dign.augment.geometry import rotation as rotation_matrices
from dign.augment.geometry import warp
from dign.augment.train_transforms import TrainTransforms, alternating_flips, shrink, shrunk_size
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


def test_rotation_turns_a_bright_spot_by_at_most_the_given_angle():
    x = torch.zeros(256, 3, 33, 33)
    x[:, :, 15:18, 29:32] = 1  # 14 pixels to the right of the center
    turned = TrainTransforms(**OFF | {"rotation": 20})(x, generator())[:, 0]
    weight = turned.sum((1, 2))
    rows = (turned.sum(2) * torch.arange(33)).sum(1) / weight - 16
    columns = (turned.sum(1) * torch.arange(33)).sum(1) / weight - 16
    angle = torch.rad2deg(torch.atan2(rows, columns))
    assert angle.abs().max() < 22
    assert angle.max() > 17 and angle.min() < -17
    torch.testing.assert_close((rows**2 + columns**2).sqrt(), torch.full((256,), 14.0), atol=0.8, rtol=0)


def rotated_by_pil(images, degrees):
    turned = []
    for image, angle in zip(images, degrees.tolist(), strict=True):
        picture = Image.fromarray(image.permute(1, 2, 0).numpy())
        turned.append(np.array(picture.rotate(angle, resample=Image.NEAREST)))
    return torch.from_numpy(np.stack(turned)).permute(0, 3, 1, 2)


@pytest.mark.parametrize("size", [(32, 32), (17, 24)])
def test_crop_flip_and_rotation_are_pad_window_mirror_and_pil_s_nearest_rotation(size):
    """But for the corners, which are black in PIL, and for source positions halfway between two pixels."""
    crop, rotation, count = 4, 10.0, 64
    images = torch.randint(1, 256, (count, 3, *size), generator=generator(), dtype=torch.uint8)
    moved = TrainTransforms(**OFF | {"crop": crop, "flip": True, "rotation": rotation})(images / 255, generator(1))
    draw = torch.rand(4, count, generator=generator(1))
    left, top = (draw[:2] * (2 * crop + 1)).long()
    padded = functional.pad(images, (crop,) * 4)
    windows = torch.stack([
        image[:, t : t + size[0], c : c + size[1]].flip(-1) if mirror else image[:, t : t + size[0], c : c + size[1]]
        for image, t, c, mirror in zip(padded, top, left, draw[2] < 0.5, strict=True)
    ])  # fmt: skip
    expected = rotated_by_pil(windows, rotation * (2 * draw[3] - 1))
    inside = rotated_by_pil(torch.ones_like(windows), rotation * (2 * draw[3] - 1)) > 0
    same = moved.mul(255).round().to(torch.uint8) == expected
    assert inside.float().mean() > 0.9
    assert same[inside].float().mean() > 0.999


@pytest.mark.parametrize("rotation", [2.0, 5.0])
def test_rotation_keeps_the_power_of_white_noise_at_the_highest_frequencies(rotation):
    x = torch.rand(200, 3, 64, 64, generator=generator())
    turned = TrainTransforms(**OFF | {"rotation": rotation})(x, generator(1))

    def highest(images):
        window = images[..., 16:48, 16:48]  # away from the black that is turned in
        spectrum = torch.fft.fft2(window - window.mean((-2, -1), keepdim=True)).abs().square().mean((0, 1))
        return spectrum[12:21, 12:21].mean()

    assert highest(turned) / highest(x) > 0.97
    smooth = warp(x, rotation_matrices(torch.full((200,), rotation)), mode="bilinear")
    assert highest(smooth) / highest(x) < 0.8, "what bilinear interpolation would leave"
    assert torch.isin(turned[0], torch.cat((x[0].flatten(), torch.zeros(1)))).all(), "pixels are moved, not blended"


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


def test_the_default_type_of_torch_does_not_matter(x):
    expected = TrainTransforms()(x, generator())
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(TrainTransforms()(x, generator()), expected)
        assert TrainTransforms()(x.double(), generator()).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_shrunk_images_have_three_quarters_of_their_sides_and_the_same_mean(x):
    smaller = shrink(x)
    assert smaller.shape[-2:] == shrunk_size(10, 14) == (8, 12)
    torch.testing.assert_close(smaller.mean((-2, -1)), x.mean((-2, -1)), atol=0.03, rtol=0)
    assert shrink(torch.full((1, 3, 32, 48), 0.3)).shape[-2:] == (24, 36)


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
