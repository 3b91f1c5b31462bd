"""Frames of sequences, against their published definitions."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from dign.core.errors import UserError
from dign.corruptions.blur import blur_along_lines
from dign.corruptions.sequences import FRAMES, NOISES, PERTURBATIONS, make_frames


@pytest.fixture(scope="module")
def images() -> torch.Tensor:
    random = torch.Generator().manual_seed(0)
    coarse = torch.nn.functional.interpolate(torch.rand(3, 3, 6, 6, generator=random), size=32, mode="bilinear")
    return (coarse * 255).to(torch.uint8)


def frames_of(images: torch.Tensor, name: str, **options) -> torch.Tensor:
    return torch.stack(list(make_frames(images, name, **options)))


@pytest.mark.parametrize("name", FRAMES)
def test_frames_change_a_little_at_a_time_and_not_with_the_batch(images, name):
    before = images.clone()
    frames = frames_of(images, name, seed=3, first=10)
    assert frames.shape == (FRAMES[name], *images.shape) and frames.dtype == torch.uint8
    assert torch.equal(images, before)
    alone = frames_of(images[1:2], name, seed=3, first=11)
    assert torch.equal(alone, frames[:, 1:2])
    steps = (frames[1:].float() - frames[:-1].float()).abs().mean((1, 2, 3, 4))
    assert float(steps.min()) > 0 and float(steps.max()) < 25
    for size in ((48, 40), (20, 20)):
        small = torch.nn.functional.interpolate(images.float(), size=size).to(torch.uint8)[:, :1]
        assert frames_of(small, name).shape == (FRAMES[name], 3, 1, *size)


def test_the_released_evaluation_has_ten():
    assert len(PERTURBATIONS) == 10 and set(FRAMES) == {*PERTURBATIONS, "snow"}


@pytest.mark.parametrize("name, deviation", [("gaussian_noise", 0.02 * 255), ("shot_noise", 255 * np.sqrt(0.5 / 700))])
def test_noises_are_drawn_anew_around_the_picture(name, deviation):
    gray = torch.full((8, 3, 32, 32), 128, dtype=torch.uint8)
    frames = frames_of(gray, name)
    assert torch.equal(frames[0], gray) and name in NOISES
    change = frames[1:].double() - 128
    assert abs(float((change + 0.5).std()) / deviation - 1) < 0.02
    assert abs(float((change[0] * change[1]).mean()) - float(change.mean()) ** 2) < 1.5


def test_middle_frames_are_the_picture(images):
    for name, frame in (("translate", 7), ("rotate", 15), ("scale", 15)):
        assert torch.equal(frames_of(images, name)[frame], images), name
    ramp = torch.arange(32, dtype=torch.uint8).mul(7).expand(1, 1, 32, 32).contiguous()
    untilted = frames_of(ramp, "tilt")[15, 0, 0, 16].double()  # published a little smaller than it was: f / (f + 1)
    places = 16 + (torch.arange(32) - 16) * (1 + 1 / (32 * 2**0.5))
    assert float((untilted - 7 * places)[2:-2].abs().max()) < 0.6
    off = frames_of(images, "brightness")[15].int() - images.int()
    assert int(off.abs().max()) <= 1


def test_translations_shift_columns(images):
    frames = frames_of(images, "translate")
    assert torch.equal(frames[9][..., 2:], images[..., :-2]) and int(frames[9][..., :2].max()) == 0
    assert torch.equal(frames[0][..., :-7], images[..., 7:]) and int(frames[0][..., -7:].max()) == 0


def test_rotations_and_scales_equal_scipys(images):
    values = images[0].double().numpy()
    inside = np.s_[:, 6:-6, 6:-6]
    for frame in (0, 22, 30):
        turned = ndimage.rotate(values, -(frame - 15), axes=(2, 1), reshape=False, order=1)
        made = frames_of(images, "rotate")[frame, 0].numpy()
        assert np.abs(made[inside] - turned[inside]).max() < 0.6
        factor = (70 + 2 * frame) / 100
        middle = 15.5 * (1 - 1 / factor)
        grown = np.stack([ndimage.affine_transform(part, [1 / factor] * 2, middle, order=1) for part in values])
        made = frames_of(images, "scale")[frame, 0].numpy()
        assert np.abs(made[inside] - grown[inside]).max() < 0.6


def test_motion_blur_turns_by_nine_degrees_a_frame(images):
    frames = frames_of(images, "motion_blur")
    assert torch.equal(frames[4], blur_along_lines(images, 6, 1.8, torch.full((3,), -144.0)))


def test_zoom_blur_is_a_running_mean():
    """Of a picture that is linear along a row: zooms by z change x to x / z, so that the mean follows by hand."""
    ramp = (torch.arange(32).float() * 7 + 10).round().to(torch.uint8).expand(1, 1, 32, 32).contiguous()
    frames = frames_of(ramp, "zoom_blur")[:, 0, 0, 16].double()
    zooms = 1 / (1 + 0.004 * torch.arange(31).double())
    middle = 10 + 7 * 15.5
    expected = middle + (ramp[0, 0, 16].double() - middle) * zooms.mean()
    assert float((frames[30] + 0.5 - expected)[4:-4].abs().max()) < 0.6


def test_a_tilt_makes_one_side_larger(images):
    """The plane is turned about both axes: towards one corner it grows, towards the other it shrinks."""
    white = torch.full((1, 1, 32, 32), 255, dtype=torch.uint8)
    frames = frames_of(white, "tilt")
    first, last = frames[0, 0, 0] > 0, frames[30, 0, 0] > 0
    assert not torch.equal(first, last) and torch.equal(first[8:-8, 8:-8], last[8:-8, 8:-8])
    assert not bool(first.all()) and not bool(last.all())


def test_wrong_input_is_a_user_error(images):
    with pytest.raises(UserError, match="Did you mean 'rotate'"):
        make_frames(images, "rotat")
    with pytest.raises(UserError, match="uint8"):
        make_frames(images.float(), "rotate")
