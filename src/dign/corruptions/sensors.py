"""Four corruptions that come from cameras: noise of two kinds, low light, and few colors.

`iso_noise`, `low_light` and `color_quant` are those of ImageNet-3DCC that need no depth map; `camera_noise` is a model
of a sensor, with severities that are ISO settings.
"""

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from dign.core.pixels import divide, truncate_to_uint8
from dign.corruptions import linear
from dign.corruptions.streams import Streams

ISO_PHOTONS = 25
DARK_PHOTONS = 120
DARK_SIGMA = 0.018
FULL_WELL = 6000
"""Electrons of a saturated pixel at ISO 100, as in the small pixels of a telephone; at ISO 200 half of them."""
READ_NOISE = 2.5
"""Standard deviation of the readout, in electrons."""
_DARK_LEVELS = 1024
_QUANTILES = 4096
_WHITE = 65535


def iso_noise(images: Tensor, sigma: float, streams: Streams) -> Tensor:
    """Poisson(25 x) / 25, clipped, plus N(0, sigma^2). Images and result (N,C,H,W) uint8, as everywhere below."""
    counts = _draw_counts(images.to(torch.int64), _photon_table(ISO_PHOTONS, 256, images.device), streams)
    return _add_normal(divide(counts, ISO_PHOTONS), sigma, streams)


def low_light(images: Tensor, brightest: float, streams: Streams) -> Tensor:
    """Stretch the image to [0,1], square it and scale it by `brightest`; Poisson(120 x) / 120 plus N(0, 0.018^2)."""
    low, high = images.amin((1, 2, 3), keepdim=True), images.amax((1, 2, 3), keepdim=True)
    stretched = (images - low).to(torch.float32) / (high - low).clamp(min=1)
    level = stretched.square_().mul_(_DARK_LEVELS - 1).round_().to(torch.int64)
    counts = _draw_counts(level, _photon_table(DARK_PHOTONS * brightest, _DARK_LEVELS, images.device), streams)
    return _add_normal(divide(counts, DARK_PHOTONS), DARK_SIGMA, streams)


def color_quant(images: Tensor, bits: int, streams: Streams) -> Tensor:
    """Keep the highest `bits` of every value."""
    return images & (256 - (1 << (8 - bits)))


def camera_noise(images: Tensor, iso: int, streams: Streams) -> Tensor:
    """The noise of a sensor at an ISO setting, as it looks after demosaicing.

    In linear light, a pixel behind its red, green or blue filter counts Poisson(full x) electrons, where full is
    FULL_WELL 100 / ISO, and is read with N(0, READ_NOISE^2) electrons more; the count is cut off at full. Its
    difference from full x is interpolated linearly from each filter's pixels (RGGB) to all others, added, and encoded
    as sRGB again. So noise is stronger in the light but more visible in the dark, and correlated between neighbors as
    in photographs, while the picture itself stays sharp. A gray image is one of a sensor without filters.
    """
    full = FULL_WELL * 100 / iso
    channels, (height, width) = images.shape[1], images.shape[-2:]
    light, _ = _light_tables(images.device)
    filters = _filters(height, width, images.device) if channels == 3 else None
    seen = images[:, 0] if filters is None else images.gather(1, filters.expand(len(images), 1, -1, -1))[:, 0]
    seen = seen.to(torch.int64)
    electrons = _draw_counts(seen, _electron_table(full, images.device), streams)
    normal = streams.normal(height * width).view(seen.shape)
    signal = (electrons + normal * READ_NOISE).clamp_(max=full) * (_WHITE / full)
    noise = signal.round_().to(torch.int32).sub_(light[seen])
    spread = noise[:, None] if filters is None else _demosaic(noise, filters)
    return _encode(images, spread)


def _encode(images: Tensor, noise: Tensor) -> Tensor:
    """Add noise (N,C,H,W), in steps of 1/65535, to images in linear light."""
    light, levels = _light_tables(images.device)
    total = light[images.to(torch.int64)].add_(noise).clamp_(0, _WHITE)
    return levels.index_select(0, total.flatten()).view(images.shape)


def _demosaic(noise: Tensor, filters: Tensor) -> Tensor:
    """Noise (N,H,W) of pixels behind filters (H,W) as (N,3,H,W), interpolated linearly to where a filter is missing."""
    height, width = noise.shape[-2:]
    padded = linear.pad(noise, (1, 1, 1, 1), "mirror")
    kinds = linear.pad(filters[None], (1, 1, 1, 1), "mirror")[0, 0]
    parts = []
    for channel, corner in ((0, 1), (1, 0), (2, 1)):  # green has neighbors on four sides, the others at corners too
        own = padded * (kinds == channel)
        total = torch.zeros_like(noise)
        for y in range(3):
            for x in range(3):
                weight = (4, 2 if corner else 1, corner)[abs(y - 1) + abs(x - 1)]
                if weight:
                    total.add_(own[:, y : y + height, x : x + width], alpha=weight)
        parts.append(total)
    return torch.stack(parts, dim=1).bitwise_right_shift_(2)


@lru_cache(maxsize=8)
def _filters(height: int, width: int, device: torch.device) -> Tensor:
    """(1,H,W) int64: the channel of each pixel's filter in the pattern RGGB."""
    rows, columns = np.arange(height)[:, None] % 2, np.arange(width) % 2
    return torch.from_numpy((rows + columns)[None].astype(np.int64)).to(device)


@lru_cache(maxsize=4)
def _light_tables(device: torch.device) -> tuple[Tensor, Tensor]:
    """Linear light (256,) int32 of the sRGB levels, in steps of 1/65535, and the levels (65536,) uint8 of the light."""
    levels = np.arange(256) / 255
    light = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    steps = np.arange(_WHITE + 1) / _WHITE
    encoded = np.where(steps <= 0.0031308, steps * 12.92, 1.055 * steps ** (1 / 2.4) - 0.055)
    return (
        torch.from_numpy(np.rint(light * _WHITE).astype(np.int32)).to(device),
        torch.from_numpy(np.rint(encoded * 255).astype(np.uint8)).to(device),
    )


def _draw_counts(rows: Tensor, table: Tensor, streams: Streams) -> Tensor:
    """Draw a count for each value, whose distribution is row `rows` (N,...) int64 of a table of quantiles; float32."""
    draws = streams.bits(rows[0].numel()).view(rows.shape).bitwise_and_(_QUANTILES - 1)
    return table.index_select(0, (rows * _QUANTILES + draws).flatten()).view(rows.shape).to(torch.float32)


def _add_normal(x: Tensor, sigma: float, streams: Streams) -> Tensor:
    normal = streams.normal(x[0].numel()).view(x.shape)
    return truncate_to_uint8(x.clamp_(0, 1).add_(normal.mul_(sigma)))


@lru_cache(maxsize=16)
def _photon_table(most: float, rows: int, device: torch.device) -> Tensor:
    return torch.from_numpy(poisson_quantiles(np.linspace(0, most, rows)).ravel()).to(device)


@lru_cache(maxsize=16)
def _electron_table(full: float, device: torch.device) -> Tensor:
    light, _ = _light_tables(torch.device("cpu"))
    return torch.from_numpy(poisson_quantiles(light.numpy() / _WHITE * full).ravel()).to(device)


def poisson_quantiles(rates: np.ndarray) -> np.ndarray:
    """(rates,4096) int16: equally likely values of Poisson variables of these rates, in order."""
    most = int(rates.max() + 6 * np.sqrt(rates.max()) + 20)
    counts = np.arange(most + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    chances = np.exp(counts * np.log(np.maximum(rates, 1e-12))[:, None] - rates[:, None] - log_factorial)
    below = np.cumsum(chances, axis=1)
    middles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.stack([np.searchsorted(row, middles) for row in below]).clip(0, most).astype(np.int16)
