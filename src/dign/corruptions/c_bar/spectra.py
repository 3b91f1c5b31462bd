"""Two noises made in the frequency domain: blue noise that blacks out pixels, brownish noise that is added."""

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dign.corruptions.streams import Streams

Amplitude = Callable[[np.ndarray], np.ndarray]


def blue_noise_sample(images: Tensor, level: float, streams: Streams) -> Tensor:
    """Pixels where blue noise of deviation 1 is at most 0.3 level - 2.5 are black.

    Images and result (N,C,H,W) uint8, as everywhere below; `level` is the severity on the authors' scale, 0 to 10.
    """
    return images * (noise_fields(images.shape[-2:], 1, blue, streams) > 0.3 * level - 2.5)


def brownish_noise(images: Tensor, level: float, streams: Streams) -> Tensor:
    """x + 6.4 level * brownish noise of deviation 1, a field of its own for every channel, in units of 1/255."""
    fields = noise_fields(images.shape[-2:], images.shape[1], brownish, streams)
    return fields.mul_(6.4 * level).add_(images).clamp_(0, 255).to(torch.uint8)


def blue(distance: np.ndarray) -> np.ndarray:
    return distance


def brownish(distance: np.ndarray) -> np.ndarray:
    return 1 / (distance**2 + 1)


def noise_fields(size: Sequence[int], count: int, amplitude: Amplitude, streams: Streams) -> Tensor:
    """(N,count,H,W) float64 of deviation 1: given amplitudes by frequency, and random phases.

    Phases are drawn for the left half of the spectrum and copied, rotated by half a turn, to the right half. That is
    not quite the symmetry of a real signal: the imaginary part of the field is dropped, and its deviation varies.
    """
    height, width = size
    half = width // 2
    phases = streams.uniform(count * height * half).to(torch.float64).mul_(2 * math.pi).view(-1, count, height, half)
    parts = [phases, phases.flip(-2, -1)]
    if width % 2:
        middle = streams.uniform(count * height).to(torch.float64).mul_(2 * math.pi).view(-1, count, height, 1)
        parts.insert(1, middle)
    phases = torch.cat(parts, dim=-1)
    spectrum = torch.polar(_amplitudes(height, width, amplitude, phases.device).expand_as(phases).contiguous(), phases)
    field: Tensor = torch.fft.ifft2(spectrum.roll((height // 2, width // 2), dims=(-2, -1))).real.contiguous()
    deviation: Tensor = field.std(dim=(-2, -1), keepdim=True, unbiased=False)
    return field.div_(deviation)


@lru_cache(maxsize=16)
def _amplitudes(height: int, width: int, amplitude: Amplitude, device: torch.device) -> Tensor:
    """(H,W) by distance from the center, in steps of the shorter side's frequencies."""
    side = min(height, width)
    rows, columns = ((np.arange(length) - length / 2) * side / length for length in (height, width))
    return torch.from_numpy(amplitude(np.hypot(rows[:, None], columns))).to(device)
