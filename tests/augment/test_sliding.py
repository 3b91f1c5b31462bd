"""Shifts and shears against PIL, image by image, and against warps that sample every pixel."""

import pytest
import torch
from PIL import Image
from pil_images import SIZES, assert_close_but_for_the_border, photographs, through_pil

from dign.augment.geometry import shear, shift
from dign.augment.operations import affine
from dign.augment.sliding import shear_x, shear_y, translate


@pytest.mark.parametrize("size", SIZES)
def test_translation_is_exactly_pil_s(size):
    """By any number of pixels, also by more than there are."""
    images = photographs(size, count=24)
    columns, rows = torch.arange(-12, 12) * 3, torch.arange(24) % 9 * 7 - 28

    def move(image, column, row):
        return image.transform(image.size, Image.AFFINE, (1, 0, column, 0, 1, row), resample=Image.BILINEAR)

    ours = translate(images, columns.float(), rows.float())
    assert torch.equal(ours, through_pil(images, move, columns.tolist(), rows.tolist()))
    assert torch.equal(ours, affine(images, shift(columns.float(), rows.float())))
    assert not ours[0].any(), "by 36 columns"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("steepest", [0.3, 3.0])
def test_shear_is_pil_s_within_the_interpolation_s_tolerance(size, axis, steepest):
    images = photographs(size, count=31)
    slopes = steepest * (2 * torch.rand(31, generator=torch.Generator().manual_seed(0)) - 1)
    none = torch.zeros(31)
    across, down = (slopes, none) if axis == "x" else (none, slopes)
    ours = (shear_x if axis == "x" else shear_y)(images, slopes)

    def through_affine(image, a, d):
        return image.transform(image.size, Image.AFFINE, (1, a, 0, d, 1, 0), resample=Image.BILINEAR)

    assert_close_but_for_the_border(ours, through_pil(images, through_affine, across.tolist(), down.tolist()))
    assert_close_but_for_the_border(ours, affine(images, shear(across, down, size)))


def test_every_image_is_slid_alone_and_none_is_changed():
    images = photographs((17, 24), count=8)
    slopes, before = torch.linspace(-0.3, 0.3, 8), images.clone()
    for slide in (shear_x, shear_y, lambda images, by: translate(images, (9 * by).round(), (7 * by).round())):
        alone = torch.cat([slide(images[i : i + 1], slopes[i : i + 1]) for i in range(8)])
        assert torch.equal(slide(images, slopes), alone)
        assert slide(images[:0], slopes[:0]).shape == (0, 3, 17, 24)
    assert torch.equal(images, before)
