"""The four noises. What a noise makes of a value depends on that value alone, and there are 256 of them: so a noise
is a 256 x 256 table of probabilities, worked out exactly once, from which every value is drawn in constant time.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

from dign.corruptions.streams import Streams

_LEVELS = np.arange(256) / 255.0


def gaussian_noise(images: Tensor, sigma: float, streams: Streams) -> Tensor:
    """x + N(0, sigma^2) for every value. Images and result (N,C,H,W) uint8, as everywhere below."""
    return _transform(images, gaussian_transitions, sigma, streams)


def speckle_noise(images: Tensor, sigma: float, streams: Streams) -> Tensor:
    """x + x * N(0, sigma^2) for every value."""
    return _transform(images, speckle_transitions, sigma, streams)


def shot_noise(images: Tensor, photons: float, streams: Streams) -> Tensor:
    """Poisson(photons * x) / photons for every value."""
    return _transform(images, shot_transitions, photons, streams)


def impulse_noise(images: Tensor, amount: float, streams: Streams) -> Tensor:
    """Every value is replaced with probability `amount`, half of the time by 1 and half by 0."""
    return _transform(images, impulse_transitions, amount, streams)


def gaussian_transitions(sigma: float) -> np.ndarray:
    """P[v, w]: the probability that value v becomes w, (256,256) float64. Also for the three functions below."""
    return _normal_transitions(np.full(256, sigma))


def speckle_transitions(sigma: float) -> np.ndarray:
    return _normal_transitions(sigma * _LEVELS)


def shot_transitions(photons: float) -> np.ndarray:
    most = int(photons + 12 * math.sqrt(photons) + 20)
    counts = np.arange(most + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
    rates = photons * _LEVELS[1:, None]
    chances = np.exp(counts * np.log(rates) - rates - log_factorial)
    table = np.zeros((256, 256))
    table[0, 0] = 1
    for count, value in enumerate(_truncate(counts / photons)):
        table[1:, value] += chances[:, count]
    table /= table.sum(axis=1, keepdims=True)
    return table


def impulse_transitions(amount: float) -> np.ndarray:
    table = np.zeros((256, 256))
    table[np.arange(256), _truncate(_LEVELS)] = 1 - amount
    table[:, 0] += amount / 2
    table[:, 255] += amount / 2
    return table


def _normal_transitions(sigmas: np.ndarray) -> np.ndarray:
    """Value v is moved by N(0, sigmas[v]^2), clipped and truncated: w catches [w, w+1) / 255."""
    bounds = np.arange(1, 256) / 255.0
    spread = np.maximum(sigmas, 1e-9)[:, None] * math.sqrt(2)
    distance = torch.from_numpy((bounds - _LEVELS[:, None]) / spread)
    below = (1 + torch.special.erf(distance).numpy()) / 2
    below[sigmas == 0] = bounds > 0  # v = 0 stays where it is
    return np.diff(below, prepend=0.0, append=1.0, axis=1)


def _truncate(x: np.ndarray) -> np.ndarray:
    levels: np.ndarray = (np.clip(x, 0, 1) * 255).astype(np.uint8)
    return levels


def _transform(
    images: Tensor, transitions: Callable[[float], np.ndarray], parameter: float, streams: Streams
) -> Tensor:
    """Draw every value anew from its row of the table (Walker's alias method).

    Eight random bits choose a column; 23 more decide between that column and its alias. The choice is made with
    bit operations, because a branch that nobody can predict would take longer than all the rest.
    """
    table = _alias_table(transitions, parameter, images.device)
    bits = streams.bits(images[0].numel()).view(images.shape)
    column = bits & 0xFF
    entry = table.index_select(0, images.to(torch.int32).bitwise_left_shift_(8).bitwise_or_(column).flatten())
    entry = entry.view(images.shape)
    keep = bits.bitwise_and_(0x7FFFFF00).sub_(entry).bitwise_right_shift_(31)  # -1, all bits set, where bits < entry
    alias = entry.bitwise_and_(0xFF)
    return column.bitwise_xor_(alias).bitwise_and_(keep).bitwise_xor_(alias).to(torch.uint8)


@cache
def _alias_table(transitions: Callable[[float], np.ndarray], parameter: float, device: torch.device) -> Tensor:
    """(65536,) int32: for value v and column c, entry 256 v + c is threshold * 256 + alias, threshold of 23 bits."""
    return _host_alias_table(transitions, parameter).to(device)


@cache
def _host_alias_table(transitions: Callable[[float], np.ndarray], parameter: float) -> Tensor:
    return torch.from_numpy(_alias_rows(transitions(parameter)).ravel())


def _alias_rows(probabilities: np.ndarray) -> np.ndarray:
    """Share out 256 columns of equal weight in each row so that each holds parts of at most two values.

    All rows at once: each has a stack of columns that weigh less than 1 and one of those that weigh more, and gives the
    column on top of the one what it lacks from that on top of the other.
    """
    weight = probabilities * 256
    rows = np.arange(len(weight))
    alias = np.tile(np.arange(256), (len(weight), 1))
    threshold = np.ones_like(weight)
    poor = np.argsort(weight >= 1, axis=1, kind="stable")  # first the poor ones, then the rich ones, each in order
    rich = poor[:, ::-1].copy()
    poor_count = (weight < 1).sum(axis=1)
    rich_count = 256 - poor_count
    rich = np.take_along_axis(rich, (rich_count[:, None] - 1 - np.arange(256)).clip(min=0), axis=1)
    while len(rows := rows[(poor_count[rows] > 0) & (rich_count[rows] > 0)]):
        poor_count[rows] -= 1
        low, high = poor[rows, poor_count[rows]], rich[rows, rich_count[rows] - 1]
        threshold[rows, low], alias[rows, low] = weight[rows, low], high
        weight[rows, high] -= 1 - weight[rows, low]
        fallen = weight[rows, high] < 1
        changed = rows[fallen]
        rich_count[changed] -= 1
        poor[changed, poor_count[changed]] = high[fallen]
        poor_count[changed] += 1
    fixed_point = np.clip(np.rint(threshold * 2**23), 0, 2**23 - 1).astype(np.int32)
    result: np.ndarray = fixed_point * 256 + alias.astype(np.int32)
    return result
