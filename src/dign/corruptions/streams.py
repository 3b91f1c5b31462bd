"""Random numbers that belong to an image, not to a batch.

Number j of image n is a hash of (seed, corruption, severity, n, j), computed for a whole batch with integer tensor
operations. So an image gets the same numbers whatever batch, thread, process or device it is corrupted in, and
there is no state to save. The hash is exact integer arithmetic: CPU and GPU agree bit for bit.
"""

from functools import cache, cached_property, lru_cache

import torch
from torch import Tensor

from dign.core.seeds import derive_seed

_GOLDEN = 0x9E3779B97F4A7C15 - 2**64  # odd, as a signed 64-bit number: steps through all 2^64 keys
_NORMAL_SCALE = 4096


class Streams:
    """One stream of random numbers per image; each call draws the next `count` numbers of every stream."""

    def __init__(self, seed: int, purpose: str, indices: Tensor) -> None:
        """`indices` (N,) int64: the place of every image in its data set."""
        self._seed, self._purpose, self._indices = seed, purpose, indices
        self._drawn = 0

    def __len__(self) -> int:
        return len(self._indices)

    @property
    def device(self) -> torch.device:
        return self._indices.device

    @cached_property
    def _keys(self) -> tuple[Tensor, Tensor]:
        """Two words (N,1) int32 per stream; made when first asked for, since not every corruption draws."""
        keys = _mix64(self._indices * _GOLDEN + derive_seed(self._seed, self._purpose))
        return keys.to(torch.int32)[:, None], (keys >> 32).to(torch.int32)[:, None]

    def bits(self, count: int) -> Tensor:
        """(N,count) int32, all 32 bits random."""
        counters = _mixed_counters(self._drawn, count, self.device)
        self._drawn += count
        low, high = self._keys
        return _mix32_((counters ^ high).add_(low))

    def uniform(self, count: int) -> Tensor:
        """(N,count) float32 in (0,1): midpoints of 2^23 equal cells, so neither end is ever reached."""
        return (self.bits(count).bitwise_and_(0x7FFFFF)).to(torch.float32).add_(0.5).mul_(2.0**-23)

    def normal(self, count: int) -> Tensor:
        """(N,count) float32, standard normal in steps of 1/4096.

        A random 16-bit number picks one of 65536 quantiles. The steps make sums of a few of these numbers with
        fixed-point weights exact, and with that independent of the order of summation (see `linear`).
        """
        words = self.bits((count + 1) // 2)
        halves = torch.stack([words & 0xFFFF, (words >> 16) & 0xFFFF], dim=2).flatten(1)[:, :count]
        table = _normal_quantiles(words.device)
        return table.index_select(0, halves.flatten()).view(len(self), count)


@lru_cache(maxsize=8)
def _mixed_counters(start: int, count: int, device: torch.device) -> Tensor:
    """(1,count) int32: the part of the hash that all images share."""
    return _mix32_(torch.arange(start, start + count, dtype=torch.int32, device=device))[None]


def _mix32_(x: Tensor) -> Tensor:
    """A bijection of 32-bit words in which every input bit flips every output bit with probability near 1/2.

    Shifts of negative numbers copy the sign, hence the masks.
    """
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    x *= 0x7FEB352D
    x ^= (x >> 15).bitwise_and_(0x1FFFF)
    x *= 0x846CA68B - 2**32
    x ^= (x >> 16).bitwise_and_(0xFFFF)
    return x


def _mix64(x: Tensor) -> Tensor:
    """The same for 64-bit words."""
    x = (x ^ (x >> 30).bitwise_and_(2**34 - 1)) * (0xBF58476D1CE4E5B9 - 2**64)
    x = (x ^ (x >> 27).bitwise_and_(2**37 - 1)) * (0x94D049BB133111EB - 2**64)
    return x ^ (x >> 31).bitwise_and_(2**33 - 1)


@cache
def _normal_quantiles(device: torch.device) -> Tensor:
    middles = (torch.arange(65536, dtype=torch.float64) + 0.5) / 65536
    quantiles: Tensor = torch.special.ndtri(middles)
    quantiles /= quantiles.std(unbiased=False)  # cutting the tails at 4.2 took a little of the variance
    return (quantiles * _NORMAL_SCALE).round().div(_NORMAL_SCALE).to(device, torch.float32)
