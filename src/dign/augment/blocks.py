"""Parts of a batch that fit into a CPU's cache."""

import torch
from torch import Tensor

BLOCK_VALUES = 600_000
"""Values of a block: with more, float copies leave a core's cache; with fewer, the calls themselves take the time."""


def block_size(images: Tensor) -> int:
    """How many images (N,...) to work on at a time: few on a CPU, all of them on a GPU and in compiled code.

    What goes over a large batch operation by operation reads and writes memory every time; block by block it stays in
    the cache, and takes less than half the time. Few also on Apple's GPUs, which may copy overlapping windows.

    >>> block_size(torch.zeros(500, 3, 32, 32)), block_size(torch.zeros(500, 3, 512, 512))
    (195, 1)
    """
    if images.device.type not in ("cpu", "mps") or torch.compiler.is_compiling():
        return max(len(images), 1)
    return max(1, BLOCK_VALUES // max(images[:1].numel(), 1))


def blocks(images: Tensor) -> list[slice]:
    """The slices of a batch that hold `block_size` images each.

    >>> [part.stop - part.start for part in blocks(torch.zeros(200, 3, 32, 32))]
    [195, 5]
    """
    size = block_size(images)
    return [slice(start, min(start + size, len(images))) for start in range(0, len(images), size)]
