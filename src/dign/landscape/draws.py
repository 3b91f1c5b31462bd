"""Random directions that belong to an image, whatever batch it comes in."""

import torch
from torch import Tensor

from dign.seeds import make_generator

BLOCK = 32
"""Images whose noise comes from one generator. Changing it changes every result."""


def image_noise(x: Tensor, *, first: int, seed: int, purpose: str, draw: int) -> Tensor:
    """Standard normal noise of the shape of x (N,...), whose images are numbers first..first+N-1 of a whole.

    The noise of an image depends on its number, the seed, the purpose and the draw alone: a result does not change
    with the batch size that fits into memory, and two models see the same perturbations.
    """
    blocks = range(first // BLOCK, (first + len(x) - 1) // BLOCK + 1)
    shape = (BLOCK, *x.shape[1:])
    noise = torch.cat(
        [
            torch.randn(
                shape,
                generator=make_generator(seed, f"{purpose}/{draw}", block, device=x.device),
                device=x.device,
                dtype=x.dtype,
            )
            for block in blocks
        ]
    )
    start = first - blocks[0] * BLOCK
    return noise[start : start + len(x)]
