"""Noise2Net (Hendrycks et al., 2021): distort each image by a small random network of its own."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from dign.core.compiled_draws import define_draw
from dign.core.image_rng import uniform
from dign.core.seeds import host_generator

BLOCKS = 4

Random = Callable[..., Tensor]
"""Uniform numbers in [0,1) of a given shape, whose first axis runs over images."""


def noise2net(
    x: Tensor,
    strength: Tensor | float,
    *,
    hidden: int = 2,
    scale: int = 4,
    generator: torch.Generator | None = None,
    batch: int | None = None,
) -> Tensor:
    """x <- x + strength * block(x), four times, each block a random residual network in the manner of Res2Net.

    Each image has its own random weights; kernel sizes (1 or 3) and dilations (1 to 3) are shared by the batch.

    Args:
        x: Images (N,3,H,W).
        strength: Residual strength, one number for the batch.
        hidden: Planes in each branch of a block.
        scale: Branches of a block.
        generator: The source of all random numbers, on the device of `x`.
        batch: The number of images in all processes, where they do not hold equally many (`dign.core.image_rng`).

    Returns:
        Images of the same shape, not clipped.

    >>> noise2net(torch.rand(2, 3, 8, 8), 0.3).shape
    torch.Size([2, 3, 8, 8])
    """
    if torch.compiler.is_compiling():
        strengths = (
            strength if isinstance(strength, Tensor) else torch.full((), strength, device=x.device, dtype=x.dtype)
        )
        distorted: Tensor = _compiled_noise2net(x, strengths, hidden, scale, batch)
        return distorted
    random = partial(uniform, generator=generator, device=x.device, dtype=x.dtype, batch=batch)

    # The host has to know the shapes, and draws them: no GPU is waited for.
    seed = torch.rand(1, generator=host_generator(generator), dtype=x.dtype)
    host = torch.Generator().manual_seed(int(seed.item() * 2**24))
    with torch.autocast(x.device.type, enabled=False):  # images keep their precision
        for _ in range(BLOCKS):
            kernels = torch.randint(2, (scale - 1,), generator=host).mul(2).add(1).tolist()
            dilations = torch.randint(1, 4, (scale - 1,), generator=host).tolist()
            x = x + strength * _block(x, hidden, list(zip(kernels, dilations, strict=True)), random)
    return x


def _block(x: Tensor, hidden: int, branches: list[tuple[int, int]], random: Random) -> Tensor:
    """1x1 convolution; branches that each see what the one before them made; 1x1 convolution.

    Each convolution is followed by normalization over the pixels of the image: what the published batch norm
    does where every image has its own channels. It would cancel a bias, so convolutions have none.
    """
    channels, wide = x.shape[1], hidden * (len(branches) + 1)
    parts = functional.instance_norm(_convolve(x, wide, 1, 1, random)).relu_().split(hidden, dim=1)
    made: list[Tensor] = []
    for part, (kernel, dilation) in zip(parts, branches, strict=False):
        seen = made[-1] + part if made else part
        made.append(functional.instance_norm(_convolve(seen, hidden, kernel, dilation, random)).relu_())
    return functional.instance_norm(_convolve(torch.cat((*made, parts[-1]), dim=1), channels, 1, 1, random))


def _convolve(x: Tensor, planes: int, kernel: int, dilation: int, random: Random) -> Tensor:
    """Convolve each image with its own random weights, U(-b, b), b = 1 / sqrt(inputs to one output).

    A product of matrices over shifted copies: for so few channels faster than a grouped convolution.
    """
    count, channels, height, width = x.shape
    reach = kernel // 2 * dilation
    padded = functional.pad(x, (reach,) * 4)
    offsets = [(i * dilation, j * dilation) for i in range(kernel) for j in range(kernel)]
    shifted = torch.cat([padded[..., i : i + height, j : j + width] for i, j in offsets], dim=1)
    inputs = channels * len(offsets)
    weights = (2 * random(count, planes, inputs) - 1) / math.sqrt(inputs)
    return torch.bmm(weights, shifted.flatten(2)).view(count, planes, height, width)


def _draw_noise2net(
    x: Tensor, strength: Tensor, hidden: int, scale: int, batch: int | None, *, generator: torch.Generator | None
) -> Tensor:
    return noise2net(x, strength, hidden=hidden, scale=scale, generator=generator, batch=batch)


_compiled_noise2net = define_draw(
    "noise2net(Tensor x, Tensor strength, int hidden, int scale, SymInt? batch) -> Tensor",
    _draw_noise2net,
    lambda x, strength, hidden, scale, batch: x.new_empty(x.shape),
)
