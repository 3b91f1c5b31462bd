"""Noise on whole batches, in [0,1] pixel units."""

import math

import torch
from torch import Tensor

from dign.core.image_rng import normal_like, uniform


def add_gaussian_noise(
    x: Tensor, sigma: float | Tensor, generator: torch.Generator | None = None, *, density: float = 1.0
) -> Tensor:
    """x + delta, delta ~ N(0, sigma^2 I), not clipped.

    Args:
        x: Images (N,...).
        sigma: Noise level in the unit of `x`: one number, or one per image (N,).
        generator: The source of the noise, on the device of `x`.
        density: The probability of a value to be noisy; the others stay as they are.

    >>> noisy = add_gaussian_noise(torch.zeros(1000, 3), 0.1, torch.Generator().manual_seed(0))
    >>> round(noisy.std().item(), 2)
    0.1
    """
    noise = normal_like(x, generator)
    if density < 1:
        noise = noise * (uniform(*x.shape, generator=generator, device=x.device, dtype=torch.float32) < density)
    if isinstance(sigma, Tensor):
        sigma = sigma.view(-1, *[1] * (x.dim() - 1))
    return x + sigma * noise


def add_diverse_gaussian_noise(
    x: Tensor, sigma_max: float, generator: torch.Generator | None = None, *, density: float = 1.0
) -> Tensor:
    """x + delta, delta ~ N(0, sigma^2 I), with sigma ~ U(0, sigma_max) drawn for each image; not clipped.

    Args:
        x: Images (N,...).
        sigma_max: Largest noise level, in the unit of `x`.
        generator: The source of levels and noise, on the device of `x`.
        density: The probability of a value to be noisy; the others stay as they are.

    >>> noisy = add_diverse_gaussian_noise(torch.zeros(9000, 3), 0.3, torch.Generator().manual_seed(0))
    >>> round(noisy.var().item(), 2)  # sigma_max^2 / 3
    0.03
    """
    sigma = sigma_max * uniform(len(x), generator=generator, device=x.device, dtype=x.dtype)
    return add_gaussian_noise(x, sigma, generator, density=density)


UNIFORM = (0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.12, 0.15)
"""Largest change of a value by uniform noise."""
BALL = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
"""Radius of a ball, in the l_2 norm of 32 x 32 images, that noise is drawn from."""
IMPULSE = (0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.12)
"""Share of the pixels that become black, white or a full color."""


def add_one_of_thirty(x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Noise of one of three kinds at one of ten strengths, drawn for each image (Siedel et al., 2024); clipped.

    Args:
        x: Images (N,C,H,W) in [0,1].
        generator: The source of all random numbers, on the device of `x`.

    >>> noisy = add_one_of_thirty(torch.full((600, 3, 8, 8), 0.5), torch.Generator().manual_seed(0))
    >>> bool(((noisy >= 0) & (noisy <= 1)).all())
    True
    """
    draw = (30 * uniform(len(x), generator=generator, device=x.device, dtype=torch.float32)).floor()
    kinds = [_strength(draw - 10 * number, table) for number, table in enumerate((UNIFORM, BALL, IMPULSE))]
    width, radius, share = (kind.to(x.dtype).view(-1, 1, 1, 1) for kind in kinds)
    normal = normal_like(x, generator)
    flat = uniform(*x.shape, generator=generator, device=x.device, dtype=x.dtype)
    hit = uniform(len(x), 1, *x.shape[-2:], generator=generator, device=x.device, dtype=torch.float32) < share
    # In so many dimensions a ball is all surface. Its radius grows with the side of the image, as a norm does.
    length = normal.square().sum((1, 2, 3), keepdim=True).sqrt()
    scale = math.sqrt(x.shape[-2] * x.shape[-1]) / 32
    noisy = x + width * (2 * flat - 1) + (scale * radius / length) * normal
    return torch.where(hit, (flat < 0.5).to(x.dtype), noisy).clamp_(0, 1)


def _strength(index: Tensor, table: tuple[float, ...]) -> Tensor:
    """The entry of the table, and zero where there is none."""
    strength = torch.zeros_like(index)
    for number, value in enumerate(table):
        strength = torch.where(index == number, value, strength)
    return strength
