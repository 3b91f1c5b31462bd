"""A procedural frost for where the photographs are not: domains of needle crystals.

Five pictures with the sizes, gray values, colors and spectra measured on the five photographs, and a texture of their
own: white noise stretched into needles, in domains of different directions. A corruption made with them is close to
the published one in brightness, contrast and scale, but not the same; results say which frost was used.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dign.corruptions.streams import Streams

_PERCENTILES = (0.0, 0.5, 5.0, 20.0, 50.0, 80.0, 95.0, 99.5, 100.0)
_OCTAVES = 8  # bands of frequency, the last from 1/4 to 1/2 cycle per pixel
_DIRECTIONS = 9


@dataclass(frozen=True)
class _Look:
    """What was measured on a photograph.

    grays: gray values at `_PERCENTILES`; colors: offset and slope of red, green and blue over gray;
    tint: standard deviation of what red, green and blue do besides; spectrum: log10 of the power per octave.
    """

    size: tuple[int, int]
    grays: tuple[float, ...]
    colors: tuple[tuple[float, float], ...]
    tint: tuple[float, float, float]
    spectrum: tuple[float, ...]


_WHITE = _Look(
    (315, 560),
    (100, 129, 165, 189, 208, 223, 235, 247, 255),
    ((1.2, 0.974), (-1.4, 1.008), (4.0, 1.026)),
    (1.5, -0.6, -2.1),
    (6.33, 5.24, 4.52, 4.13, 3.79, 3.28, 2.72, 2.03),
)
_LOOKS = (
    _Look(
        (600, 900),
        (80, 94, 102, 114, 128, 145, 163, 182, 210),
        ((-98.4, 1.358), (35.6, 0.876), (75.0, 0.700)),
        (10.1, -3.6, -8.4),
        (6.44, 5.59, 4.53, 3.90, 3.04, 2.61, 2.36, 1.87),
    ),
    _WHITE,
    _WHITE,  # the second and the third photograph are the same
    _Look(
        (350, 527),
        (40, 70, 102, 128, 150, 171, 196, 243, 255),
        ((-11.2, 0.994), (3.8, 0.996), (9.9, 1.038)),
        (1.4, 0.8, -3.1),
        (6.42, 5.21, 4.37, 4.19, 3.90, 3.50, 3.16, 2.54),
    ),
    _Look(
        (495, 660),
        (20, 39, 58, 83, 117, 157, 202, 246, 255),
        ((-11.8, 1.023), (2.4, 0.996), (18.4, 0.959)),
        (1.2, -0.4, -1.8),
        (6.89, 5.54, 5.15, 4.82, 4.22, 3.67, 3.10, 2.58),
    ),
)


def procedural_pictures() -> tuple[Tensor, ...]:
    """Five pictures (3,H,W) uint8, always the same."""
    return tuple(_picture(look, number) for number, look in enumerate(_LOOKS))


def _picture(look: _Look, number: int) -> Tensor:
    streams = Streams(number, "frost texture", torch.zeros(1, dtype=torch.int64))
    gray = _needles(look.size, streams)
    for _ in range(4):  # each of the two spoils the other a little
        gray = _with_spectrum(gray, look.spectrum)
        gray = _with_grays(gray, look.grays)
    tint = _standard(_filtered(_white_noise(look.size, streams), _gaussian_response(look.size, 40.0, 40.0, 0.0)))
    channels = [
        offset + slope * gray + spread * tint for (offset, slope), spread in zip(look.colors, look.tint, strict=True)
    ]
    return torch.stack(channels).clamp_(0, 255).round_().to(torch.uint8)


def _needles(size: Sequence[int], streams: Streams) -> Tensor:
    """Ridges of stretched noise; each direction rules where its own smooth noise exceeds all others."""
    rule = [_filtered(_white_noise(size, streams), _gaussian_response(size, 9.0, 9.0, 0.0)) for _ in range(_DIRECTIONS)]
    domain = torch.stack(rule).argmax(dim=0)
    needles = torch.zeros(size, dtype=torch.float64)
    for number in range(_DIRECTIONS):
        angle = torch.pi * number / _DIRECTIONS
        streaks = _filtered(_white_noise(size, streams), _gaussian_response(size, 10.0, 0.7, angle))
        ridges = -_standard(streaks).abs()
        needles = torch.where(domain == number, ridges, needles)
    return _standard(needles)


def _white_noise(size: Sequence[int], streams: Streams) -> Tensor:
    return streams.normal(size[0] * size[1]).view(size).to(torch.float64)


def _standard(x: Tensor) -> Tensor:
    return (x - x.mean()) / x.std()


def _frequencies(size: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Cycles per pixel down (H,1) and across (1,W/2+1)."""
    down = torch.fft.fftfreq(size[0], dtype=torch.float64)
    across = torch.fft.rfftfreq(size[1], dtype=torch.float64)
    return down[:, None], across[None]


def _gaussian_response(size: Sequence[int], along: float, aside: float, angle: float) -> Tensor:
    """The frequency response of a Gaussian blur with two widths in pixels, `along` a direction and `aside` of it."""
    down, across = _frequencies(size)
    cosine, sine = torch.cos(torch.tensor(angle)), torch.sin(torch.tensor(angle))
    u, v = across * cosine + down * sine, down * cosine - across * sine
    return torch.exp(-2 * torch.pi**2 * ((u * along) ** 2 + (v * aside) ** 2))


def _filtered(x: Tensor, response: Tensor) -> Tensor:
    filtered: Tensor = torch.fft.irfft2(torch.fft.rfft2(x) * response, s=x.shape)
    return filtered


def _with_spectrum(x: Tensor, spectrum: tuple[float, ...]) -> Tensor:
    """Scale every octave of frequencies to the given power, smoothly in between; the mean goes."""
    down, across = _frequencies(x.shape)
    radius = torch.hypot(down, across).clamp(min=1e-6)
    octave = (torch.log2(radius / 0.5) + _OCTAVES).clamp(0, _OCTAVES - 1e-9)
    transform = torch.fft.rfft2(x - x.mean())
    power = transform.abs().square() / x.numel()
    band = octave.to(torch.int64)
    present = torch.stack([power[band == number].mean() for number in range(_OCTAVES)])
    gain = (torch.tensor(spectrum, dtype=torch.float64) - present.clamp(min=1e-12).log10()) / 2
    place = (octave - 0.5).clamp(0, _OCTAVES - 1)
    low = place.floor().to(torch.int64)
    high = (low + 1).clamp(max=_OCTAVES - 1)
    smooth = gain[low] + (gain[high] - gain[low]) * (place - low)
    scaled: Tensor = torch.fft.irfft2(transform * 10**smooth, s=x.shape)
    return scaled


def _with_grays(x: Tensor, grays: tuple[float, ...]) -> Tensor:
    """Replace values by rank, so that the given percentiles are met."""
    rank = torch.empty(x.numel(), dtype=torch.float64)
    rank[x.flatten().argsort()] = torch.linspace(0, 100, x.numel(), dtype=torch.float64)
    percentiles = torch.tensor(_PERCENTILES, dtype=torch.float64)
    values = torch.tensor(grays, dtype=torch.float64)
    high = torch.searchsorted(percentiles, rank).clamp(1, len(values) - 1)
    share = (rank - percentiles[high - 1]) / (percentiles[high] - percentiles[high - 1])
    return (values[high - 1] + share * (values[high] - values[high - 1])).view_as(x)
