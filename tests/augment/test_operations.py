"""The batched operations against PIL, image by image."""

import pytest
import torch
from PIL import Image, ImageOps
from pil_images import SIZES, assert_close_but_for_the_border, distance, photographs, through_pil

from dign.augment import geometry
from dign.augment.operations import affine, autocontrast, equalize, fourier, posterize, solarize


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
def test_a_warp_by_whole_pixels_is_exactly_pil_s(size):
    images = photographs(size, count=21)
    columns, rows = torch.arange(-10, 11).float(), torch.arange(21).float() % 7 - 3

    def move(image, column, row):
        return image.transform(image.size, Image.AFFINE, (1, 0, column, 0, 1, row), resample=Image.BILINEAR)

    theirs = through_pil(images, move, columns.tolist(), rows.tolist())
    assert torch.equal(affine(images, geometry.shift(columns, rows)), theirs)


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
