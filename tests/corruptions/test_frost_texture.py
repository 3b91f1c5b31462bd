"""Procedural frost: the same every time, and its pieces measure like pieces of the photographs."""

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


# Of pieces as the benchmarks cut them from the photographs (`frost_pictures("photographs")`), the mean over pieces of:
# gray value, its standard deviation, the difference of neighbors; and the standard deviation of the gray value over
# pieces. At 32, 64 and 224 pixels.
MEASURED = {
    0: ((128.8, 14.6, 10.9, 11.8), (128.9, 14.6, 8.6, 10.4), (128.9, 16.2, 7.7, 10.2)),
    1: ((202.0, 18.0, 15.2, 8.7), (201.8, 18.3, 12.1, 6.2), (201.9, 19.7, 8.7, 5.9)),
    3: ((154.1, 25.5, 23.7, 10.4), (155.6, 23.3, 18.6, 7.4), (154.3, 26.1, 14.7, 7.1)),
    4: ((111.1, 34.7, 29.9, 15.4), (109.9, 32.5, 23.0, 12.0), (109.8, 35.4, 18.6, 11.7)),
}


SIZES = ((32, 0.2), (64, 0.3), (224, 1.0))
"""Sides of images, and the scale at which the benchmark of that size has the pictures."""


def cut_pieces(picture: torch.Tensor, side: int, scale: float) -> torch.Tensor:
    """Gray values of 80 random pieces, (80,side,side)."""
    gray = luma(frost._resize(picture, scale, side, side)[None].double())[0, 0]
    corners = torch.rand((80, 2), generator=torch.Generator().manual_seed(0)) * (torch.tensor(gray.shape) - side)
    return torch.stack([gray[y : y + side, x : x + side] for y, x in corners.int().tolist()])


def measure_pieces(pieces: torch.Tensor) -> tuple[float, ...]:
    differences = (pieces.diff(dim=1).abs().mean() + pieces.diff(dim=2).abs().mean()) / 2
    means = pieces.mean((1, 2))
    return float(means.mean()), float(pieces.std((1, 2)).mean()), float(differences), float(means.std())


@pytest.mark.parametrize("number", MEASURED)
def test_pieces_measure_like_pieces_of_the_photographs(number: int) -> None:
    picture = frost.frost_pictures("procedural")[number]
    for size, expected in zip(SIZES, MEASURED[number], strict=True):
        mean, spread, difference, over_pieces = measure_pieces(cut_pieces(picture, *size))
        assert mean == pytest.approx(expected[0], abs=2.5)
        assert spread == pytest.approx(expected[1], rel=0.06)
        assert difference == pytest.approx(expected[2], rel=0.07)
        assert over_pieces == pytest.approx(expected[3], rel=0.25)


def octaves(pieces: torch.Tensor) -> np.ndarray:
    """log10 of the mean power in the three octaves up to half a cycle per pixel."""
    side = pieces.shape[-1]
    window = np.hanning(side)[:, None] * np.hanning(side)
    gray = pieces.numpy()
    transform = np.fft.fft2((gray - gray.mean((1, 2), keepdims=True)) * window)
    power = (np.abs(transform) ** 2).mean(0) / (window**2).sum()
    frequency = np.hypot(np.fft.fftfreq(side)[:, None], np.fft.fftfreq(side))
    edges = 0.5 / 2.0 ** np.arange(3, -1, -1)
    bands = [(frequency >= low) & (frequency < high) for low, high in itertools.pairwise(edges)]
    return np.log10([power[band].mean() for band in bands])


@pytest.mark.skipif(not HAVE_PHOTOGRAPHS, reason="needs imagecorruptions' photographs")
@pytest.mark.parametrize("number", MEASURED)
def test_pieces_have_the_spectrum_of_the_photographs(number: int) -> None:
    made, photograph = (frost.frost_pictures(source)[number] for source in ("procedural", "photographs"))
    assert made.shape == photograph.shape
    for size in SIZES:
        a, b = (cut_pieces(picture, *size) for picture in (made, photograph))
        assert np.abs(octaves(a) - octaves(b)).max() < 0.12
        assert float(a.mean()) == pytest.approx(float(b.mean()), abs=4)
