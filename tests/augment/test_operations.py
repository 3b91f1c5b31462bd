"""The batched operations against PIL, image by image."""

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps

from dign.augment import geometry
from dign.augment.operations import affine, autocontrast, equalize, fourier, posterize, solarize, translate

SIZES = [(32, 32), (17, 24)]


def photographs(size, count=24, seed=0):
    """Smooth images, noise, few levels, flat channels: what makes histograms differ."""
    rng = np.random.default_rng(seed)
    height, width = size
    waves = np.sin(np.arange(height)[:, None, None] / 3 + rng.random((count, 1, 1, 3)) * 6) + np.cos(
        np.arange(width)[None, :, None] / 5 + rng.random((count, 1, 1, 3)) * 6
    )
    images = 128 + 50 * waves + 10 * rng.standard_normal((count, height, width, 3))
    images[::4] = rng.random((len(images[::4]), height, width, 3)) * 256  # noise over the whole range
    images[1::4] = 100 + 40 * (images[1::4] > 128)  # two levels
    images[2, ..., 0] = 77  # a flat channel
    return torch.from_numpy(images.clip(0, 255).astype(np.uint8)).permute(0, 3, 1, 2).contiguous()


def through_pil(images, change, *parameters):
    changed = []
    for i, image in enumerate(images):
        pil = Image.fromarray(image.permute(1, 2, 0).numpy())
        changed.append(torch.from_numpy(np.array(change(pil, *(each[i] for each in parameters)))).permute(2, 0, 1))
    return torch.stack(changed)


def distance(ours, theirs):
    return (ours.int() - theirs.int()).abs()


@pytest.mark.parametrize("size", SIZES)
def test_autocontrast_is_pil_s_within_a_level(size):
    images = photographs(size)
    off = distance(autocontrast(images), through_pil(images, ImageOps.autocontrast))
    assert off.max() <= 1 and (off == 0).float().mean() > 0.998


@pytest.mark.parametrize("size", SIZES)
def test_equalize_is_pil_s(size):
    images = photographs(size)
    assert torch.equal(equalize(images), through_pil(images, ImageOps.equalize))


def test_posterize_and_solarize_are_pil_s_with_a_parameter_for_each_image():
    images = photographs((32, 32), count=27)
    bits = 1 + torch.arange(27) % 8
    assert torch.equal(
        posterize(images, bits), through_pil(images, lambda i, b: ImageOps.posterize(i, b), bits.tolist())
    )
    thresholds = torch.linspace(1, 256, 27).round()
    theirs = through_pil(images, lambda i, t: ImageOps.solarize(i, t), thresholds.int().tolist())
    assert torch.equal(solarize(images, thresholds), theirs)


@pytest.mark.parametrize("size", SIZES)
def test_rotation_is_pil_s_within_the_interpolation_s_tolerance(size):
    images, degrees = photographs(size, count=61), torch.arange(-30, 31)
    ours = affine(images, geometry.rotation(degrees.float()))
    theirs = through_pil(images, lambda i, d: i.rotate(d, resample=Image.BILINEAR), degrees.tolist())
    assert_close_but_for_the_border(ours, theirs)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("axis", ["x", "y"])
def test_shear_is_pil_s_within_the_interpolation_s_tolerance(size, axis):
    images = photographs(size, count=31)
    amounts = 0.6 * torch.rand(31, generator=torch.Generator().manual_seed(0)) - 0.3
    none = torch.zeros(31)
    across, down = (amounts, none) if axis == "x" else (none, amounts)
    ours = affine(images, geometry.shear(across, down, size))

    def shear(image, a, d):
        return image.transform(image.size, Image.AFFINE, (1, a, 0, d, 1, 0), resample=Image.BILINEAR)

    assert_close_but_for_the_border(ours, through_pil(images, shear, across.tolist(), down.tolist()))


@pytest.mark.parametrize("size", SIZES)
def test_translation_is_exactly_pil_s(size):
    images = photographs(size, count=21)
    columns, rows = torch.arange(-10, 11).float(), torch.arange(21).float() % 7 - 3
    matrices = geometry.shift(columns, rows)

    def move(image, column, row):
        return image.transform(image.size, Image.AFFINE, (1, 0, column, 0, 1, row), resample=Image.BILINEAR)

    theirs = through_pil(images, move, columns.tolist(), rows.tolist())
    assert torch.equal(translate(images, matrices), theirs)
    assert torch.equal(affine(images, matrices), theirs)


def assert_close_but_for_the_border(ours, theirs):
    """Within one level, but where a source position falls on the image's very edge (in or out is rounding)."""
    off = distance(ours, theirs) > 1
    assert off.float().mean() < 1e-4, f"{off.float().mean():.1e} of all values differ by more than a level"
    assert (distance(ours, theirs) == 0).float().mean() > 0.998


def test_a_wave_has_the_given_strength_frequency_and_signs():
    images = torch.full((2, 3, 32, 32), 128, dtype=torch.uint8)
    signs = torch.tensor([[1.0, -1, 1], [1, 1, 1]])
    frequencies = torch.tensor([[3.0, 5.0], [0.0, -7.0]])
    waved = fourier(images, torch.tensor([0.1, 0.05]), frequencies, torch.tensor([0.3, 1.0]), signs)
    wave = (waved.double() - 128) / 255
    torch.testing.assert_close(
        wave.square().mean((2, 3)).sqrt()[:, 0], torch.tensor([0.1, 0.05]).double(), atol=2e-3, rtol=0
    )
    spectrum = torch.fft.fft2(wave).abs()
    for i, (row, column) in enumerate(frequencies.int().tolist()):
        assert spectrum[i, 0, row % 32, column % 32] > 0.98 * spectrum[i, 0].square().sum().div(2).sqrt()
    assert (wave[0, 0] + wave[0, 1]).abs().max() <= 1.01 / 255
    assert (wave[0, 0] - wave[0, 2]).abs().max() == 0


@pytest.mark.parametrize("operation", [autocontrast, equalize])
def test_operations_leave_their_argument_alone(operation):
    images = photographs((32, 32))
    before = images.clone()
    operation(images)
    assert torch.equal(images, before)
