"""Squares, lines and stars, against their published definitions for one pixel after the other."""

import math

import numpy as np
import torch

from dign.corruptions.c_bar.covers import checkerboard_cutout, inverse_sparkles, lines, sparkles


def test_the_share_of_gray_squares_is_half_of_the_fraction():
    """Half of the board's squares are black, and of these a fraction is gray."""
    images = torch.zeros(400, 1, 32, 32, dtype=torch.uint8)
    from dign.corruptions import corrupt

    for severity, fraction in ((1, 0.1), (5, 0.5)):
        share = (corrupt(images, "checkerboard_cutout", severity) == 128).double().mean()
        assert abs(float(share) - fraction / 2) < 0.012


def test_squares_of_the_board_are_gray_as_a_whole(picture, recorder):
    made = checkerboard_cutout(picture, 10, recorder)  # all black squares
    angle, side = recorder.uniforms[0] * 2 * math.pi, max((0.1 + 0.15 * recorder.uniforms[1]) * 14, 1)
    for y in range(14):
        for x in range(14):
            u = (math.cos(angle) * y + math.sin(angle) * x) / side
            v = (-math.sin(angle) * y + math.cos(angle) * x) / side
            kept = int(u % 2) != int(v % 2)
            assert made[0, :, y, x].tolist() == (picture[0, :, y, x].tolist() if kept else [128] * 3)


def draw_line(out: np.ndarray, y0: int, x0: int, y1: int, x1: int) -> None:
    """Anti-aliased: each pixel that is less than one pixel away is covered by one minus its distance."""
    run, rise = x1 - x0, y1 - y0
    for y in range(len(out)):
        for x in range(len(out)):
            distance = abs((x - x0) * rise - (y - y0) * run) / math.hypot(run, rise)
            within = y0 <= y <= y1 or y1 <= y <= y0 if abs(rise) > abs(run) else x0 <= x <= x1 or x1 <= x <= x0
            if distance < 1 and within:
                out[y, x] = np.floor(distance * out[y, x] + (1 - distance) * 128)


def test_lines(picture, array, recorder, check):
    made = lines(picture, 2.5, recorder)
    base, variation, *rest = recorder.uniforms
    expected = array.copy()
    for down, across, turn in zip(*np.array(rest).reshape(3, 3), strict=True):
        angle = 2 * math.pi * (base + (0.1 + 0.9 * variation) * (turn - 0.5))
        s, c = math.sin(angle) * 14, math.cos(angle) * 14
        draw_line(expected, int(14 * down - c), int(14 * across - s), int(14 * down + c), int(14 * across + s))
    check(made, expected)


def test_no_line_leaves_a_tiny_picture_as_it_is(recorder):
    image = torch.randint(0, 256, (1, 3, 8, 8), dtype=torch.uint8)
    assert torch.equal(lines(image, 0.5, recorder), image)


def star(y: int, x: int, center: tuple[float, float], lengths: list[float], exponent: float) -> float:
    dy, dx = y - center[0], x - center[1]
    d = (math.atan2(dx, dy) + math.pi) / (2 * math.pi) * len(lengths)
    i, f = int(d), d - int(d)
    length = lengths[i % len(lengths)] + f * (lengths[(i + 1) % len(lengths)] - lengths[i % len(lengths)])
    return float(np.clip((1 - (f - 0.5) ** 2) * (length**2 / (dy**2 + dx**2 + 1e-4)) ** exponent, 0, 1))


def test_sparkles(picture, array, recorder, check):
    made = sparkles(picture, 7.0, recorder)
    down, across, rays = np.array(recorder.uniforms).reshape(3, 5)
    normals = np.array(recorder.normals).reshape(5, 199)
    out = array.copy()
    for number in range(5):
        lengths = [max(1, 0.98 + 0.25 * 0.98 * draw) for draw in normals[number][: 50 + int(rays[number] * 150)]]
        center = (down[number] * 14, across[number] * 14)
        weights = np.array([[star(y, x, center, lengths, 1.0) for x in range(14)] for y in range(14)])[..., None]
        out += weights * (255 - out)
    check(made, out)


def test_inverse_sparkles(picture, array, recorder, check):
    made = inverse_sparkles(picture, 4.5, recorder)
    down, across, rays = recorder.uniforms
    lengths = [3.5 + 0.25 * 3.5 * draw for draw in recorder.normals[: 50 + int(rays * 150)]]
    center = ((0.25 + 0.5 * down) * 14, (0.25 + 0.5 * across) * 14)
    weights = np.array([[star(y, x, center, lengths, 0.585) for x in range(14)] for y in range(14)])[..., None]
    check(made, 255 + weights * (array - 255))
