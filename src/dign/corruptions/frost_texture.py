"""A procedural frost for where the photographs are not: fans of needle crystals.

Five pictures of the photographs' sizes, with a texture of their own: white noise stretched into needles, in fans, in
places stronger than in others. Their settings are chosen so that the pieces that images get measure like pieces of the
photographs, in brightness, contrast, spectrum and color, in the mean and from piece to piece. Which pixels of a
photograph are light or dark is not in them. Results say which frost was used.
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
    """What makes pieces of a picture measure like pieces of a photograph; `seed` is of its clouds and needles.

    grays: gray values at `_PERCENTILES`; colors: offset and slope of red, green and blue over gray; tint: standard
    deviation of what red, green and blue do besides, in patches of about `tint_width` pixels; spectrum: log10 of the
    power per octave; unevenness: standard deviation of the logarithm of the detail's strength from place to place, and
    its correlation with the brightness there (of what goes in: gray values and spectrum change both).
    """

    size: tuple[int, int]
    seed: int
    grays: tuple[float, ...]
    colors: tuple[tuple[float, float], ...]
    tint: tuple[float, float, float]
    tint_width: float
    spectrum: tuple[float, ...]
    unevenness: tuple[float, float]


_WHITE = _Look(
    size=(315, 560),
    seed=1,
    grays=(60, 145, 168, 190, 209, 222, 231, 239, 255),
    colors=((2.1, 0.969), (-1.2, 1.007), (0.7, 1.044)),
    tint=(0.9, -0.1, -1.8),
    tint_width=12.0,
    spectrum=(6.40, 4.80, 4.31, 4.01, 3.71, 3.18, 2.63, 1.88),
    unevenness=(0.19, -0.86),
)
_LOOKS = (
    _Look(
        size=(600, 900),
        seed=0,
        grays=(81, 94, 102, 112, 127, 146, 168, 186, 219),
        colors=((-103.7, 1.405), (37.4, 0.859), (79.3, 0.662)),
        tint=(10.0, -3.5, -8.1),
        tint_width=40.0,
        spectrum=(7.07, 5.16, 4.90, 4.01, 3.24, 2.80, 2.60, 2.04),
        unevenness=(0.11, -0.95),
    ),
    _WHITE,
    _WHITE,  # the second and the third photograph are the same
    _Look(
        size=(350, 527),
        seed=4,
        grays=(24, 72, 108, 132, 152, 172, 186, 231, 255),
        colors=((-10.7, 0.993), (3.6, 0.996), (9.5, 1.041)),
        tint=(0.6, 0.3, -3.1),
        tint_width=12.0,
        spectrum=(6.54, 4.97, 4.05, 4.12, 3.81, 3.38, 3.05, 2.37),
        unevenness=(0.23, 0.02),
    ),
    _Look(
        size=(495, 660),
        seed=3,
        grays=(27, 41, 58, 80, 110, 146, 183, 225, 255),
        colors=((-10.9, 1.014), (2.2, 0.998), (17.0, 0.972)),
        tint=(0.8, -0.1, -1.5),
        tint_width=40.0,
        spectrum=(6.90, 5.36, 5.17, 4.94, 4.36, 3.76, 3.19, 2.57),
        unevenness=(0.23, -0.14),
    ),
)


def procedural_pictures() -> tuple[Tensor, ...]:
    """Five pictures (3,H,W) uint8, always the same."""
    made = {look: _picture(look) for look in set(_LOOKS)}
    return tuple(made[look] for look in _LOOKS)


def _picture(look: _Look) -> Tensor:
    streams = Streams(look.seed, "frost texture", torch.zeros(1, dtype=torch.int64))
    light = _cloud(look.size, 40.0, streams)
    spread, with_light = look.unevenness
    strength = with_light * light + (1 - with_light**2) ** 0.5 * _cloud(look.size, 25.0, streams)
    gray = light + _needles(look.size, streams) * torch.exp(spread * strength)
    for _ in range(4):  # each of the two spoils the other a little
        gray = _with_spectrum(gray, look.spectrum)
        gray = _with_grays(gray, look.grays)
    tint = _cloud(look.size, look.tint_width, streams)
    channels = [
        offset + slope * gray + spread * tint for (offset, slope), spread in zip(look.colors, look.tint, strict=True)
    ]
    return torch.stack(channels).clamp_(0, 255).round_().to(torch.uint8)


def _needles(size: Sequence[int], streams: Streams) -> Tensor:
    """Ridges of stretched noise; the phase of smooth complex noise says which direction rules where: they fan out."""
    even, odd = (_filtered(_white_noise(size, streams), _gaussian_response(size, 9.0, 9.0, 0.0)) for _ in range(2))
    phase = torch.atan2(even, odd).div_(2 * torch.pi).add_(0.5)
    domain = phase.mul_(2 * _DIRECTIONS).floor_().to(torch.int64).remainder_(_DIRECTIONS)
    noise = torch.fft.rfft2(_white_noise(size, streams))
    needles = torch.zeros(size, dtype=torch.float64)
    for number in range(_DIRECTIONS):
        response = _gaussian_response(size, 10.0, 0.7, torch.pi * number / _DIRECTIONS)
        ridges = -_standard(torch.fft.irfft2(noise * response, s=size)).abs()
        needles = torch.where(domain == number, ridges, needles)
    return _standard(needles)


def _cloud(size: Sequence[int], width: float, streams: Streams) -> Tensor:
    """Smooth noise of mean 0 and variance 1."""
    return _standard(_filtered(_white_noise(size, streams), _gaussian_response(size, width, width, 0.0)))


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
    rank[x.flatten().to(torch.float32).argsort()] = torch.linspace(0, 100, x.numel(), dtype=torch.float64)
    percentiles = torch.tensor(_PERCENTILES, dtype=torch.float64)
    values = torch.tensor(grays, dtype=torch.float64)
    high = torch.searchsorted(percentiles, rank).clamp(1, len(values) - 1)
    share = (rank - percentiles[high - 1]) / (percentiles[high] - percentiles[high - 1])
    return (values[high - 1] + share * (values[high] - values[high - 1])).view_as(x)
