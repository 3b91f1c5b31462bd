"""Gaussian noise on whole batches, in [0,1] pixel units, not clipped."""

import torch
from torch import Tensor

from dign.core.image_rng import normal_like, uniform


def add_gaussian_noise(x: Tensor, sigma: float | Tensor, generator: torch.Generator | None = None) -> Tensor:
    """x + delta, delta ~ N(0, sigma^2 I), not clipped.

    Args:
        x: Images (N,...).
        sigma: Noise level in the unit of `x`: one number, or one per image (N,).
        generator: The source of the noise, on the device of `x`.

    >>> noisy = add_gaussian_noise(torch.zeros(1000, 3), 0.1, torch.Generator().manual_seed(0))
    >>> round(noisy.std().item(), 2)
    0.1
    """
    noise = normal_like(x, generator)
    if isinstance(sigma, Tensor):
        sigma = sigma.view(-1, *[1] * (x.dim() - 1))
    return x + sigma * noise


def add_diverse_gaussian_noise(x: Tensor, sigma_max: float, generator: torch.Generator | None = None) -> Tensor:
    """x + delta, delta ~ N(0, sigma^2 I), with sigma ~ U(0, sigma_max) drawn for each image; not clipped.

    Args:
        x: Images (N,...).
        sigma_max: Largest noise level, in the unit of `x`.
        generator: The source of levels and noise, on the device of `x`.

    >>> noisy = add_diverse_gaussian_noise(torch.zeros(9000, 3), 0.3, torch.Generator().manual_seed(0))
    >>> round(noisy.var().item(), 2)  # sigma_max^2 / 3
    0.03
    """
    sigma = sigma_max * uniform(len(x), generator=generator, device=x.device, dtype=x.dtype)
    return add_gaussian_noise(x, sigma, generator)
