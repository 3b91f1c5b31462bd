"""A small image-to-image network, trained to reproduce images: what `dign.augment.edited_networks` distorts them by.

DeepAugment's authors take published networks for super-resolution and compression. This one has the build of their
first (EDSR: a head, residual blocks, a long skip connection, a tail), is small, and is trained on the training images
in minutes; between head and tail images have half their sides.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional

from dign.core.errors import UserError
from dign.core.files import replace_file
from dign.core.pixels import to_float
from dign.core.seeds import make_generator

WIDTH, BLOCKS = 24, 6
STEPS, BATCH_SIZE, RATE = 600, 64, 2e-3

Weights = dict[str, Tensor]
"""The tensors of an autoencoder by name: `head`, `body.0.first`, `body.0.second`, ..., `end`, `tail`, each with
`.weight` and `.bias`."""

Take = Callable[[Tensor], Tensor]
"""From indices to uint8 images (N,3,H,W)."""


def make_weights(seed: int = 0, *, device: torch.device | str = "cpu") -> Weights:
    """An untrained autoencoder.

    >>> make_weights()["head.weight"].shape
    torch.Size([24, 3, 3, 3])
    """
    generator = make_generator(seed, "autoencoder")
    layers = {"head": (WIDTH, 3), **_body_layers(), "end": (WIDTH, WIDTH), "tail": (12, WIDTH)}
    weights: Weights = {}
    for name, (outputs, inputs) in layers.items():
        bound = (1 / (9 * inputs)) ** 0.5
        drawn = (2 * torch.rand(outputs, inputs, 3, 3, generator=generator) - 1) * bound
        weights |= {f"{name}.weight": drawn.to(device), f"{name}.bias": torch.zeros(outputs, device=device)}
    return weights


def _body_layers() -> dict[str, tuple[int, int]]:
    return {f"body.{number}.{which}": (WIDTH, WIDTH) for number in range(BLOCKS) for which in ("first", "second")}


def encode(x: Tensor, weights: Weights) -> Tensor:
    """Features (N,24,H/2,W/2) of images (N,3,H,W); odd sides are padded."""
    padded = functional.pad(x - 0.5, (0, x.shape[-1] % 2, 0, x.shape[-2] % 2), mode="replicate")
    return convolve(padded, weights, "head", stride=2)


def block(features: Tensor, weights: Weights, number: int) -> Tensor:
    """The features after a residual block."""
    inner = convolve(features, weights, f"body.{number}.first").relu()
    return features + convolve(inner, weights, f"body.{number}.second")


def decode(features: Tensor, weights: Weights, size: tuple[int, int]) -> Tensor:
    """Images (N,3,H,W) of features."""
    made = functional.pixel_shuffle(convolve(features, weights, "tail"), 2)
    return made[..., : size[0], : size[1]] + 0.5


def convolve(x: Tensor, weights: Weights, name: str, stride: int = 1) -> Tensor:
    """A layer of the autoencoder, by its name."""
    return functional.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], stride=stride, padding=1)


def reproduce(x: Tensor, weights: Weights) -> Tensor:
    """What the autoencoder makes of images (N,3,H,W) in [0,1]; trained, about the same images.

    >>> reproduce(torch.rand(2, 3, 9, 8), make_weights()).shape
    torch.Size([2, 3, 9, 8])
    """
    head = encode(x, weights)
    features = head
    for number in range(BLOCKS):
        features = block(features, weights, number)
    return decode(head + convolve(features, weights, "end"), weights, (x.shape[-2], x.shape[-1]))


def train_weights(
    take: Take,
    count: int,
    *,
    seed: int = 0,
    steps: int | None = None,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Weights:
    """Train an autoencoder to reproduce images, by Adam on the mean absolute difference.

    Args:
        take: Reads images by their indices, uint8 (N,3,H,W).
        count: How many images there are.
        seed: Decides the first weights and the order of the images: the same seed, the same autoencoder.
        steps: Steps of 64 images; 600 by default.
        device: Where to train it.
        progress: Called with the steps done, and of how many.

    Returns:
        Its weights, on the CPU.

    >>> images = torch.randint(0, 256, (8, 3, 8, 8), dtype=torch.uint8)
    >>> len(train_weights(images.__getitem__, 8, steps=2))
    30
    """
    steps = STEPS if steps is None else steps
    weights = {name: value.requires_grad_() for name, value in make_weights(seed, device=device).items()}
    optimizer = torch.optim.Adam(weights.values(), lr=RATE)
    with torch.enable_grad():
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = RATE * (1 - step / steps)
            chosen = torch.randint(count, (BATCH_SIZE,), generator=make_generator(seed, "autoencoder/images", step))
            x = to_float(take(chosen).to(device))
            loss = (reproduce(x, weights) - x).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            progress(step + 1, steps)
    return {name: value.detach().cpu() for name, value in weights.items()}


def save_autoencoder(path: Path | str, weights: Weights) -> None:
    """Store an autoencoder as a safetensors file, whole or not at all."""
    with replace_file(Path(path)) as partial:
        save_file({name: value.contiguous() for name, value in weights.items()}, partial)


def load_autoencoder(path: Path | str) -> Weights:
    """Load what `save_autoencoder` wrote.

    Raises:
        UserError: The file is not there, or is not an autoencoder.
    """
    expected = {name: value.shape for name, value in make_weights().items()}
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path} is not a readable autoencoder: {error}.") from error
    if {name: value.shape for name, value in weights.items()} != expected or not all(
        value.dtype == torch.float32 and bool(value.isfinite().all()) for value in weights.values()
    ):
        raise UserError(f"{path} is not an autoencoder of this version of dign: remove it, and it is trained again.")
    return weights
