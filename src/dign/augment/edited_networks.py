"""DeepAugment by edited networks (Hendrycks et al., 2021): images through an autoencoder whose weights are distorted.

Seventeen edits of the weights, three of the features after the head and four inside the body are drawn as its authors
draw them, for some twenty images at a time. The autoencoder is one of `dign.augment.autoencoder`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from dign.augment.autoencoder import BLOCKS, WIDTH, Weights, block, convolve, decode, encode, load_autoencoder
from dign.core.compiled_draws import define_draw
from dign.core.image_rng import SharedGenerator, global_batch_size, uniform
from dign.core.seeds import host_generator

DRAWN_AT_ONCE = 3
"""Edits of the weights in a network."""


class Draws:
    """Random numbers for a network: what the host has to know, and tensors on the device."""

    def __init__(self, host: torch.Generator, generator: torch.Generator | None, like: Tensor) -> None:
        self._host, self._generator, self._like = host, generator, like

    def integer(self, below: int) -> int:
        return int(torch.randint(below, (1,), generator=self._host))

    def fraction(self) -> float:
        return float(torch.rand(1, generator=self._host))

    def uniform(self, *shape: int) -> Tensor:
        """Numbers in [0,1), the same in all processes."""
        like = self._like
        return torch.rand(shape, generator=self._generator, device=like.device, dtype=like.dtype)

    def dirichlet(self, *shape: int, alpha: float) -> Tensor:
        """Numbers that add up to one along the last axis."""
        like = self._like
        drawn = torch._standard_gamma(
            torch.full(shape, alpha, device=like.device, dtype=torch.float32), generator=self._generator
        )
        return (drawn / drawn.sum(-1, keepdim=True).clamp(min=1e-20)).to(like.dtype)


Edit = Callable[[Weights, Draws], None]


def _first(draws: Draws) -> str:
    return f"body.{draws.integer(BLOCKS)}.first.weight"


def _second(draws: Draws) -> str:
    return f"body.{draws.integer(BLOCKS)}.second.weight"


def _either(draws: Draws) -> str:
    return (_first, _second)[draws.integer(2)](draws)


def flip_filters(weights: Weights, draws: Draws) -> None:
    """Reverse the order of a block's filters."""
    number = draws.integer(BLOCKS)
    for which in ("first", "second"):
        for kind in ("weight", "bias"):
            name = f"body.{number}.{which}.{kind}"
            weights[name] = weights[name].flip(0)


def negate(weights: Weights, draws: Draws) -> None:
    name = _first(draws)
    weights[name] = -weights[name]
    bias = name.replace("weight", "bias")
    weights[bias] = -weights[bias]


def zero(weights: Weights, draws: Draws) -> None:
    name = _first(draws)
    weights[name] = torch.zeros_like(weights[name])
    bias = name.replace("weight", "bias")
    weights[bias] = torch.zeros_like(weights[bias])


def bend(weights: Weights, draws: Draws) -> None:
    """Minus the GELU of a block's weights."""
    number = draws.integer(BLOCKS)
    for which in ("first", "second"):
        name = f"body.{number}.{which}.weight"
        weights[name] = -functional.gelu(weights[name])


def laplace(weights: Weights, draws: Draws) -> None:
    """Times the kernel of Laplace, with four neighbors."""
    _weigh_taps(weights, _first(draws), center=-4.0, edge=1.0, corner=0.0)


def contrast_neighbors(weights: Weights, draws: Draws) -> None:
    """Times the kernel that compares with all eight neighbors."""
    _weigh_taps(weights, _first(draws), center=8.0, edge=-1.0, corner=-1.0)


def _weigh_taps(weights: Weights, name: str, *, center: float, edge: float, corner: float) -> None:
    taps = weights[name].clone()
    taps[..., ::2, ::2] *= corner
    taps[..., 1, ::2] *= edge
    taps[..., ::2, 1] *= edge
    taps[..., 1, 1] *= center
    weights[name] = taps


def scale(weights: Weights, draws: Draws) -> None:
    """Times 1 + 4 u U, u once and U for each weight in [0,1)."""
    name = _second(draws)
    weights[name] = weights[name] * (1 + 4 * draws.fraction() * draws.uniform(*weights[name].shape))


def mirror(weights: Weights, draws: Draws) -> None:
    """Mirror the first kernels of a block, and negate its second."""
    number = draws.integer(BLOCKS)
    weights[f"body.{number}.first.weight"] = weights[f"body.{number}.first.weight"].flip(-1)
    weights[f"body.{number}.second.weight"] = -weights[f"body.{number}.second.weight"]


def shift(weights: Weights, draws: Draws) -> None:
    """Convolve kernels with random shifts of random sign, one for each channel."""
    name = _first(draws)
    places = draws.uniform(WIDTH, 9)
    taps = (places == places.amax(-1, keepdim=True)).to(places.dtype)
    signs = 2 * (draws.uniform(WIDTH, 1) < 0.5).to(places.dtype) - 1
    kernel = (taps * signs).view(1, WIDTH, 3, 3).expand(WIDTH, -1, -1, -1)
    weights[name] = functional.conv2d(weights[name], kernel, padding=1)


def blur_randomly(weights: Weights, draws: Draws) -> None:
    """Convolve kernels with (2 U u - 1) / 6."""
    name = _first(draws)
    kernel = (2 * draws.uniform(WIDTH, WIDTH, 3, 3) * draws.fraction() - 1) / 6
    weights[name] = functional.conv2d(weights[name], kernel, padding=1)


def blur_by_dirichlet(weights: Weights, draws: Draws) -> None:
    """Convolve kernels with others that are drawn from Dirichlet(0.1)."""
    name = _second(draws)
    kernel = draws.dirichlet(WIDTH, WIDTH, 9, alpha=0.1).view(WIDTH, WIDTH, 3, 3)
    weights[name] = functional.conv2d(weights[name], kernel, padding=1)


def add_noise(weights: Weights, draws: Draws) -> None:
    """Plus U(-0.5, 0.5)."""
    name = _second(draws)
    weights[name] = weights[name] + draws.uniform(*weights[name].shape) - 0.5


def rotate(weights: Weights, draws: Draws) -> None:
    """Rotate the kernels of five layers, in space or across channels."""
    for _ in range(5):
        name, turns = _either(draws), 1 + draws.integer(3)
        weights[name] = weights[name].rot90(turns, ((0, 1), (2, 3))[draws.integer(2)])


def sign_randomly(weights: Weights, draws: Draws) -> None:
    """Random signs of the weights of five layers."""
    for _ in range(5):
        name = _first(draws)
        weights[name] = weights[name] * (2 * draws.uniform(*weights[name].shape).round() - 1)


def drop_randomly(weights: Weights, draws: Draws) -> None:
    """Half of the weights of five layers."""
    for _ in range(5):
        name = _first(draws)
        weights[name] = weights[name] * draws.uniform(*weights[name].shape).round()


def negate_filters(weights: Weights, draws: Draws) -> None:
    """Negate those filters of five layers that are among half as many draws with replacement as there are filters."""
    for _ in range(5):
        name = _first(draws)
        share = 1 - (1 - 1 / WIDTH) ** (WIDTH // 2)
        signs = 1 - 2 * (draws.uniform(WIDTH, 1, 1, 1) < share).to(weights[name].dtype)
        weights[name] = weights[name] * signs


def keep_largest(weights: Weights, draws: Draws) -> None:
    """Of each kernel of five layers its largest tap alone."""
    for _ in range(5):
        name = _either(draws)
        taps = weights[name].flatten(2)
        weights[name] = torch.where(taps == taps.amax(-1, keepdim=True), taps, 0).view_as(weights[name])


EDITS: tuple[Edit, ...] = (
    flip_filters, negate, zero, bend, laplace, contrast_neighbors, scale, mirror, shift, blur_randomly,
    blur_by_dirichlet, add_noise, rotate, sign_randomly, drop_randomly, negate_filters, keep_largest,
)  # fmt: skip
"""The seventeen edits of the weights."""


def edit_weights(weights: Weights, draws: Draws) -> Weights:
    """A copy of the weights after three edits, drawn with replacement."""
    edited = dict(weights)
    for _ in range(DRAWN_AT_ONCE):
        EDITS[draws.integer(len(EDITS))](edited, draws)
    return edited


def distort(x: Tensor, weights: Weights, draws: Draws, noise: Tensor) -> Tensor:
    """Images (N,3,H,W) through one edited network, in [0,1].

    Args:
        x: Images in [0,1].
        weights: The autoencoder's.
        draws: The source of what the images have in common.
        noise: Uniform numbers of the shape of the features, for each image its own.
    """
    edited = edit_weights(weights, draws)
    head = _edit_features(encode(x, edited), draws, noise)
    features = _edited_body(head, edited, draws)
    made = decode(head + convolve(features, edited, "end"), edited, (x.shape[-2], x.shape[-1]))
    return made.nan_to_num(0.5).clamp(0, 1)


def _edit_features(features: Tensor, draws: Draws, noise: Tensor) -> Tensor:
    """One of three edits after the head, or none: swapped channels; 5 % zeros; 2.5 % with the other sign."""
    option = draws.integer(4)
    if option == 0:
        order = list(range(features.shape[1]))
        for _ in range(5):
            a, b = draws.integer(len(order)), draws.integer(len(order))
            order[a], order[b] = order[b], order[a]
        return torch.cat([features[:, channel : channel + 1] for channel in order], dim=1)
    if option == 1:
        return features * (noise + 0.45).round()
    if option == 2:
        return features * (2 * (noise + 0.475).round() - 1)
    return features


def _edited_body(features: Tensor, weights: Weights, draws: Draws) -> Tensor:
    """The residual blocks, with one of four edits after a third of them, or none."""
    option = draws.integer(5)
    skipped = {1 + draws.integer(BLOCKS - 1) for _ in range(3)} if option == 3 else set()
    for number in range(BLOCKS):
        if number == max(1, math.ceil(BLOCKS * 5 / 16)):
            features = _edit_inside(features, option, draws)
        if number not in skipped:
            features = block(features, weights, number)
    return features


def _edit_inside(features: Tensor, option: int, draws: Draws) -> Tensor:
    if option == 0:
        return -features
    if option == 1:
        return features.relu() if draws.integer(3) == 1 else functional.gelu(features)
    if option == 2:
        return features.flip((1, 2) if draws.integer(3) == 1 else (1, 3))
    return features


def edited_networks(
    x: Tensor,
    path: str,
    *,
    redraw: float = 0.05,
    generator: torch.Generator | None = None,
    batch: int | None = None,
) -> Tensor:
    """Images through edited autoencoders, a new one for about every twentieth image.

    Args:
        x: Images (N,3,H,W) in [0,1].
        path: File of the autoencoder, from `dign.augment.autoencoder.save_autoencoder`.
        redraw: Networks for each image: 0.05 is one for twenty, 1 one for each.
        generator: The source of all random numbers, on the device of `x`.
        batch: The number of images in all processes, where they do not hold equally many (`dign.core.image_rng`).

    Returns:
        Images of the same shape in [0,1].
    """
    if torch.compiler.is_compiling():
        distorted: Tensor = _compiled_networks(x, path, redraw, batch)
        return distorted
    modified = Path(path).stat().st_mtime_ns if Path(path).exists() else 0  # if not, the reader says so
    weights = _read(path, str(x.device), x.dtype, modified)
    seed = torch.rand(1, generator=host_generator(generator), dtype=torch.float64)
    host = torch.Generator().manual_seed(int(seed.item() * 2**52))
    total = global_batch_size(len(x), generator) if batch is None else batch
    shape = (len(x), WIDTH, (x.shape[-2] + 1) // 2, (x.shape[-1] + 1) // 2)
    noise = uniform(*shape, generator=generator, device=x.device, dtype=x.dtype, batch=batch)
    count = max(1, round(redraw * total))
    made: list[Tensor] = []
    with torch.no_grad(), torch.autocast(x.device.type, enabled=False):  # images keep their precision
        for number in range(count):
            draws = Draws(host, generator, x)
            here = slice(_held(number * total // count, generator), _held((number + 1) * total // count, generator))
            made.append(distort(x[here], weights, draws, noise[here]))
    return torch.cat(made)


def _held(images: int, generator: torch.Generator | None) -> int:
    """How many of the first `images` of the whole batch this process holds."""
    if not isinstance(generator, SharedGenerator):
        return images
    return len(range(generator.rank, images, generator.world_size))


@lru_cache(maxsize=4)
def _read(path: str, device: str, dtype: torch.dtype, modified: int) -> Weights:
    return {name: value.to(device=device, dtype=dtype) for name, value in load_autoencoder(path).items()}


def _draw_networks(
    x: Tensor, path: str, redraw: float, batch: int | None, *, generator: torch.Generator | None
) -> Tensor:
    return edited_networks(x, path, redraw=redraw, generator=generator, batch=batch).contiguous()


_compiled_networks = define_draw(
    "edited_networks(Tensor x, str path, float redraw, SymInt? batch) -> Tensor",
    _draw_networks,
    lambda x, path, redraw, batch: x.new_empty(x.shape),
)
