"""Procedural frost: the same every time, and statistically like the photographs."""

import itertools

import numpy as np
import pytest
import torch

from dign.corruptions import frost
from dign.corruptions.color import luma
from dign.corruptions.frost_texture import procedural_pictures

HAVE_PHOTOGRAPHS = frost.frost_source() == "photographs"


@pytest.mark.slow
def test_five_pictures_in_color_the_same_every_time():
    pictures = procedural_pictures()
    assert len(pictures) == 5 and all(picture.dtype == torch.uint8 and picture.shape[0] == 3 for picture in pictures)
    assert all(torch.equal(*pair) for pair in zip(pictures, procedural_pictures(), strict=True))


def radial_power(gray: np.ndarray) -> np.ndarray:
    """log10 of the power in five octaves of frequency."""
    window = np.hanning(gray.shape[0])[:, None] * np.hanning(gray.shape[1])
    power = np.abs(np.fft.fft2((gray - gray.mean()) * window)) ** 2 / (window**2).sum()
    frequency = np.hypot(np.fft.fftfreq(gray.shape[0])[:, None], np.fft.fftfreq(gray.shape[1]))
    edges = 0.5 / 2.0 ** np.arange(5, -1, -1)
    bands = [(frequency >= low) & (frequency < high) for low, high in itertools.pairwise(edges)]
    return np.log10([power[band].mean() for band in bands])


@pytest.mark.skipif(not HAVE_PHOTOGRAPHS, reason="needs imagecorruptions' photographs")
def test_procedural_frost_measures_like_the_photographs() -> None:
    for made, photograph in zip(frost.frost_pictures("procedural"), frost.frost_pictures("photographs"), strict=True):
        a, b = made.double(), photograph.double()
        assert a.shape == b.shape
        assert float((a.mean((1, 2)) - b.mean((1, 2))).abs().max()) < 4
        assert float((a.std((1, 2)) / b.std((1, 2)) - 1).abs().max()) < 0.2
        gray_a, gray_b = luma(a[None])[0, 0].numpy(), luma(b[None])[0, 0].numpy()
        assert np.abs(radial_power(gray_a) - radial_power(gray_b)).max() < 0.2
        shrunk_a, shrunk_b = gray_a[2::5, 2::5], gray_b[2::5, 2::5]  # as the benchmarks of small images use them
        assert np.abs(radial_power(shrunk_a) - radial_power(shrunk_b)).max() < 0.5
