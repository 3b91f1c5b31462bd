"""Spline resampling, against SciPy's and against the published pictures."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from dign.corruptions import corrupt
from dign.corruptions.c_bar import splines
from dign.corruptions.streams import Streams


@pytest.mark.parametrize("severity", range(1, 6))
def test_circular_motion_blur_is_the_published_one(clean, reference, severity):
    off = (
        corrupt(clean[:10], "circular_motion_blur", severity).int() - reference["circular_motion_blur"][severity - 1]
    ).abs()
    assert int(off.max()) <= 1 and float((off == 0).double().mean()) > 0.98


@pytest.mark.parametrize("severity", range(1, 6))
def test_some_order_of_the_channels_gives_each_published_abberation(clean, reference, severity):
    """In six draws of the order for every picture, 1 in (5/6)^40 pictures has none that fits."""
    expected = reference["transverse_chromatic_abberation"][severity - 1]
    fits = torch.zeros(10, dtype=torch.bool)
    for seed in range(40):
        made = corrupt(clean[:10], "transverse_chromatic_abberation", severity, seed=seed)
        fits |= ((made.int() - expected.int()).abs() <= 1).flatten(1).double().mean(1) > 0.999
    assert bool(fits.all())


def test_magnified_channels_equal_scipys():
    image = torch.randint(0, 256, (1, 3, 21, 30), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    made = splines.transverse_chromatic_abberation(image, 4, Streams(0, "test", torch.arange(1)))[0].numpy()
    for channel in range(3):
        least = []
        for factor in (1.0, 1.1, 1.2):
            grown = ndimage.zoom(image[0, channel].numpy(), factor, order=3, prefilter=False)
            top, left = (grown.shape[0] - 21) // 2, (grown.shape[1] - 30) // 2
            part = grown[top : top + 21, left : left + 30]
            least.append(np.abs(part.astype(int) - made[channel].astype(int)).max())
        assert min(least) <= 1


@pytest.mark.parametrize("size", [(24, 31), (60, 50)])
def test_rotations_of_any_size_equal_scipys(size):
    """By one matrix where the picture is small, by linear interpolations of coefficients where it is large."""
    image = torch.nn.functional.interpolate(
        torch.rand(1, 3, 6, 6, generator=torch.Generator().manual_seed(2)), size=size
    )
    image = (image * 255).to(torch.uint8)
    made = splines.circular_motion_blur(image, 6.0, Streams(0, "test", torch.arange(1)))[0].numpy()
    steps = np.linspace(-1, 1, 21)
    weights = np.exp(-2 * steps**2)
    rotated = [ndimage.rotate(image[0].double().numpy(), 9 * step, axes=(2, 1), reshape=False) for step in steps]
    expected = np.clip(np.tensordot(weights / weights.sum(), rotated, 1), 0, 255)
    assert np.abs(made - expected).max() < 1.2 and abs((expected - made).mean() - 0.5) < 0.05
