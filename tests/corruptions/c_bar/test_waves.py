"""Patterns, against their published definitions for one pixel after the other."""

import math

import numpy as np
import pytest
import torch

from dign.corruptions.c_bar.waves import (
    cocentric_sine_waves,
    perlin_noise,
    plasma_noise,
    single_frequency_greyscale,
    turbulence,
)
from dign.corruptions.streams import Streams


def per_pixel(function, side: int = 14) -> np.ndarray:
    return np.array([[function(x, y) for x in range(side)] for y in range(side)], dtype=np.float64)


def test_a_single_frequency(picture, array, recorder, check):
    made = single_frequency_greyscale(picture, 2, recorder)
    first, second, order, phase = recorder.uniforms
    first = (2 * first - 1) * math.pi
    pair = [first, (2 * second - 1) * abs(first)][:: -1 if order < 0.5 else 1]
    wave = per_pixel(lambda x, y: math.sin(x * pair[0] + y * pair[1] + 2 * math.pi * phase))
    check(made, array + 39.2 * wave[..., None])


def test_rings_around_a_center(picture, array, recorder, check):
    made = cocentric_sine_waves(picture, 3, recorder)
    down, across, frequency, amplitude, ring = recorder.uniforms

    def rings(x: int, y: int) -> float:
        dx, dy, width = x - across * 14, y - down * 14, ring * 1.4
        distance = math.hypot(dx, dy) + math.sin(math.atan2(dx, dy) * frequency * 10) * amplitude * 1.4
        return distance % width / width - 0.5

    check(made, array + 38.4 * per_pixel(rings)[..., None])


@pytest.mark.parametrize("seed", range(3))
def test_plasma(picture, array, check, recorder, seed):
    recorder.__init__(seed)
    made = plasma_noise(picture, 10, recorder)
    time, iterations, sharpness, scale = recorder.uniforms
    time *= 6 * math.pi

    def plasma(x: float, y: float) -> list[float]:
        x, y = (part / ((0.075 + 0.125 * scale) * 14) for part in (x, y))
        frequency, slowing, damping = 1.0, 1.0, 1.0
        for _ in range(4 + int(iterations * 3)):
            a = math.cos(y * frequency + time / slowing) / damping
            b = math.sin(x * frequency + time / slowing) / damping
            x, y = x + a - 0.3 * b, y + b + 0.3 * a
            frequency, slowing, damping = frequency * 1.93, slowing * 1.15, damping * (2.25 - (0.5 + 0.5 * sharpness))
        return [math.sin(x - time), math.sin((x + y + math.sin(time)) / 2), math.sin(y + time)]

    check(made, (1 - 64 / 255) * array + 64 * per_pixel(plasma))


def test_turbulence_is_zero_at_the_points_of_the_lattice_and_smooth():
    """Every octave is zero where rows and columns are whole numbers of cells; noise(p) is at most 1.5 sqrt(1/2)."""
    noise = turbulence((28, 42), Streams(0, "test", torch.arange(5)))  # cells of 4 pixels
    assert float(noise[:, ::4, ::4].abs().max()) < 1e-12
    assert noise.shape == (5, 28, 42) and float(noise.min()) >= 0 and 0.3 < float(noise.max()) < 2.1


def test_one_cell_of_perlin_noise(recorder):
    """Between four gradients, by the definition: slopes times offsets, blended by 3 t^2 - 2 t^3."""
    noise = turbulence((14, 14), recorder)[0]  # cells of 2 pixels: octave 1 at odd pixels, the others at lattice points
    lattice = int(13 / 2 * 16) + 2
    gradients = 2 * np.array(recorder.uniforms).reshape(2, lattice, lattice) - 1
    gradients /= np.hypot(*gradients)
    for row, column in ((0, 0), (1, 4)):
        corners = {(i, j): gradients[:, row + i, column + j] @ (0.5 - i, 0.5 - j) for i in (0, 1) for j in (0, 1)}
        expected = abs(1.5 * sum(corners.values()) / 4)  # 3/4 - 2/8 = 1/2: a plain mean
        assert abs(float(noise[2 * row + 1, 2 * column + 1]) - expected) < 1e-6


def test_perlin_noise_brightens_towards_the_mix(picture, recorder, check, array):
    made = perlin_noise(picture, 8.8, recorder)
    again = turbulence((14, 14), Streams(0, "test", torch.arange(1)))[0].numpy()
    check(made, (1 - 0.44) * array + 255 * 0.44 * np.clip(0.5 * again + 0.5, 0, 1)[..., None])
