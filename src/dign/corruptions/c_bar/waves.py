"""Four patterns that are added or mixed in: a sine wave, rings, plasma and Perlin noise."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from dign.corruptions.c_bar.grids import draw_uniform, pixel_places
from dign.corruptions.color import luma
from dign.corruptions.streams import Streams

_OCTAVES = (1, 2, 4, 8, 16)
_CELLS = 7  # of the coarsest octave along the shorter side


def single_frequency_greyscale(images: Tensor, level: float, streams: Streams) -> Tensor:
    """x + 19.6 level * a sine wave of random direction, frequency and phase, in units of 1/255.

    Images and result (N,C,H,W) uint8, as everywhere below; `level` is the severity on the authors' scale, 0 to 10.
    """
    first, second, order, phase = draw_uniform(streams, 4)
    first = (2 * first - 1) * math.pi
    second = (2 * second - 1) * first.abs()
    swapped = order < 0.5
    across, down = torch.where(swapped, second, first), torch.where(swapped, first, second)
    rows, columns = pixel_places(images)
    wave = torch.sin(columns * across + rows * down + 2 * math.pi * phase)
    return _add(images, wave.mul_(19.6 * level))


def cocentric_sine_waves(images: Tensor, level: float, streams: Streams) -> Tensor:
    """x + 12.8 level * rings around a random center, whose edges are sine waves, in units of 1/255."""
    height, width = images.shape[-2:]
    side = min(height, width)
    down, across, frequency, amplitude, ring = draw_uniform(streams, 5)
    rows, columns = pixel_places(images)
    rows, columns = rows - down * height, columns - across * width
    ring, amplitude = ring * (0.1 * side), amplitude * (0.1 * side)
    distance = torch.hypot(rows, columns).add_(torch.atan2(columns, rows).mul_(10 * frequency).sin_().mul_(amplitude))
    return _add(images, (distance % ring).div_(ring).sub_(0.5).mul_(12.8 * level))


def plasma_noise(images: Tensor, level: float, streams: Streams) -> Tensor:
    """(1 - s) x + s * three channels of swirling sine waves in [-1,1], s = 6.4 level / 255."""
    time, iterations, sharpness, scale = draw_uniform(streams, 4)
    time, count = time * 6 * math.pi, (iterations * 3).floor_().add_(4)
    growth = 1.75 - 0.5 * sharpness
    rows, columns = pixel_places(images)
    scale = (0.075 + 0.125 * scale) * min(images.shape[-2:])
    x, y = torch.broadcast_tensors(columns / scale, rows / scale)
    frequency, slowing, damping = 1.0, 1.0, torch.ones_like(time)
    for step in range(6):
        offset = time * (1 / slowing)
        first, second = torch.cos(y * frequency + offset) / damping, torch.sin(x * frequency + offset) / damping
        moving = (count > step).to(x.dtype)  # an image of fewer iterations stays as it is
        x, y = x + moving * (first - 0.3 * second), y + moving * (second + 0.3 * first)
        frequency, slowing, damping = frequency * 1.93, slowing * 1.15, damping * growth
    waves = (torch.sin(x - time), torch.sin((x + y + time.sin()) * 0.5), torch.sin(y + time))
    noise = torch.stack(waves, dim=1)
    noise = noise if images.shape[1] == 3 else luma(noise)
    return noise.mul_(6.4 * level).add_(images * (1 - 6.4 * level / 255)).clamp_(0, 255).to(torch.uint8)


def perlin_noise(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Mix 5 level percent of the picture with five octaves of Perlin's turbulence, brighter than gray."""
    alpha = 0.05 * level
    noise = turbulence(images.shape[-2:], streams)[:, None].mul_(0.5).add_(0.5).clamp_(max=1)
    return (noise.mul_(255 * alpha) + images * (1 - alpha)).clamp_(0, 255).to(torch.uint8)


def turbulence(size: Sequence[int], streams: Streams) -> Tensor:
    """(N,H,W) float64: the sum over octaves f of |noise(f p)| / f, with seven cells of noise along the shorter side.

    All octaves use the same gradients, of random directions: octave f reads those of the first f times as many cells.
    """
    cell = min(size) / _CELLS
    lattice = [int((length - 1) / cell * _OCTAVES[-1]) + 2 for length in size]
    angles = streams.uniform(2 * lattice[0] * lattice[1]).to(torch.float64).mul_(2).sub_(1)
    gradients = angles.view(-1, 2, lattice[0] * lattice[1])
    gradients = gradients / torch.linalg.vector_norm(gradients, dim=1, keepdim=True)
    total = torch.zeros((len(streams), *size), dtype=torch.float64, device=streams.device)
    for octave in _OCTAVES:
        places = [torch.arange(n, dtype=torch.float64, device=streams.device) * (octave / cell) for n in size]
        total.add_(_gradient_noise(gradients, places, lattice[1]).abs_().div_(octave))
    return total


def _gradient_noise(gradients: Tensor, places: Sequence[Tensor], stride: int) -> Tensor:
    """Noise (N,H,W) at a grid of places: zero at lattice points, where it has the given gradients (N,2,points)."""
    low = [place.floor() for place in places]
    down, across = (place - start for place, start in zip(places, low, strict=True))
    down = down[:, None]
    corner = low[0].to(torch.int64)[:, None] * stride + low[1].to(torch.int64)
    smooth_down, smooth_across = (part.square() * (3 - 2 * part) for part in (down, across))

    def height(row: int, column: int) -> Tensor:
        slope: Tensor = gradients[:, :, (corner + row * stride + column).flatten()].unflatten(2, corner.shape)
        rise: Tensor = slope[:, 0] * (down - row) + slope[:, 1] * (across - column)
        return rise

    sides = []
    for column in (0, 1):
        top = height(0, column)
        sides.append((height(1, column) - top).mul_(smooth_down).add_(top))
    return (sides[1] - sides[0]).mul_(smooth_across).add_(sides[0]).mul_(1.5)


def _add(images: Tensor, pattern: Tensor) -> Tensor:
    return (pattern[:, None] + images).clamp_(0, 255).to(torch.uint8)
