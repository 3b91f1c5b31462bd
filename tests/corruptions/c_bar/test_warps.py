"""Distortions, against their published definitions for one pixel after the other."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from dign.corruptions import corrupt
from dign.corruptions.c_bar import warps
from dign.corruptions.sets import get_parameters


def read(image: np.ndarray, row: float, column: float) -> np.ndarray:
    """(H,W,3) at a place, linearly, black beyond the edges."""
    top, left = math.floor(row), math.floor(column)
    total = np.zeros(3)
    for y, down in ((top, 1 - row + top), (top + 1, row - top)):
        for x, across in ((left, 1 - column + left), (left + 1, column - left)):
            if 0 <= y < image.shape[0] and 0 <= x < image.shape[1]:
                total += image[y, x] * down * across
    return total


def test_ripple(picture, array, recorder, check):
    made = warps.ripple(picture, 8.0, recorder)
    wavelength = [(0.1 + 0.2 * draw) * 14 for draw in recorder.uniforms[:2]]
    phase = [2 * math.pi * draw for draw in recorder.uniforms[2:]]

    def place(number: int, axis: int) -> float:
        return number + 0.02 * 14 * math.sin(2 * math.pi * number / wavelength[axis] + phase[axis])

    check(made, np.array([[read(array, place(y, 0), place(x, 1)) for x in range(14)] for y in range(14)]))


def test_each_square_of_a_published_picture_is_pinched_and_turned_to_one_side(clean, reference):
    """All that is random is the side, so that one of two pictures is the published one, in every square."""
    for severity in (1, 3, 5):
        setting = get_parameters("pinch_and_twirl", severity, "cifar")
        index, weights, cells = warps._twirls(32, 32, *setting, torch.device("cpu"))
        for image, expected in zip(clean[:10], reference["pinch_and_twirl"][severity - 1], strict=True):
            both = [(image.flatten(1)[:, index[turn]] * weights[turn]).sum(-1) for turn in (0, 1)]
            off = [(made.floor() - expected.flatten(1)).abs() for made in both]
            for cell in range(9):
                least = min(float((part[:, cells == cell] > 1).double().mean()) for part in off)
                assert least == 0


@pytest.mark.parametrize("seed", range(2))
def test_caustic_refraction(picture, array, recorder, check, seed):
    recorder.__init__(seed)
    made = warps.caustic_refraction(picture, 6.6, recorder)
    time, scale = 0.5 + 1.5 * recorder.uniforms[0], (0.75 + 0.5 * recorder.uniforms[1]) * 14

    def light(y: float, x: float) -> float:
        p = np.array([y, x]) / scale % 1 * 6.28318530718 - 250
        i, c = p.copy(), 1.0
        for n in range(5):
            t = time * (1 - 3.5 / (n + 1))
            i = p + np.array([np.cos(t - i[0]) + np.sin(t + i[1]), np.sin(t - i[1]) + np.cos(t + i[0])])
            c += 1 / np.hypot(p[0] * 0.005 / np.sin(i[0] + t), p[1] * 0.005 / np.cos(i[1] + t))
        return min(abs(1.17 - (c / 5) ** 1.4) ** 8, 1)

    relief = ndimage.gaussian_filter(np.array([[light(y, x) for x in range(14)] for y in range(14)]), 1)
    relief = np.pad(relief, 1)

    def refract(y: int, x: int) -> np.ndarray:
        down, across = relief[y + 2, x + 1] - relief[y, x + 1], relief[y + 1, x + 2] - relief[y + 1, x]
        normal = np.array([down, across, 1.0]) / np.linalg.norm([down, across, 1.0])
        ray = np.array([0, 0, 1.0])
        if normal[2] < 1 - 1e-3:
            angle = np.arccos(normal[2])
            out = np.arcsin(np.sin(angle) / 4)
            axis = np.cross(ray, normal) / np.linalg.norm(np.cross(ray, normal))
            ray = np.cos(out) * normal + np.sin(out) * np.cross(normal, axis)
        shift = np.round(ray * 0.33 * 14, 3)
        return read(array, y + shift[0], x + shift[1]) + (down - across) * 1.32 * 255

    check(made, np.array([[refract(y, x) for x in range(14)] for y in range(14)]))


def test_taps_beyond_the_edges_weigh_nothing():
    places, weights = warps.bilinear_taps(torch.tensor([-0.5, 1.0]), torch.tensor([0.0, 2.25]), 2, 3)
    assert weights.tolist() == [[0, 0, 0.5, 0], [0.75, 0, 0, 0]]
    assert int(places.min()) >= 0 and int(places.max()) < 6


def test_oblong_pictures_are_distorted_without_error():
    images = torch.randint(0, 256, (2, 3, 12, 31), dtype=torch.uint8)
    for name in ("ripple", "pinch_and_twirl", "caustic_refraction"):
        assert corrupt(images, name, 5).shape == images.shape
