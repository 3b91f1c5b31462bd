"""Gaussian noise on whole batches, in [0,1] pixel units, not clipped."""

import torch
from torch import Tensor

from dign.core.image_rng import normal_like, uniform


def add_gaussian_noise(x: Tensor, sigma: float | Tensor, generator: torch.Generator | None = None) -> Tensor:
    """x + delta, delta ~ N(0, sigma^2 I); `sigma` is one number or one per image (N,)."""
    noise = normal_like(x, generator)
    if isinstance(sigma, Tensor):
        sigma = sigma.view(-1, *[1] * (x.dim() - 1))
    return x + sigma * noise


def add_diverse_gaussian_noise(x: Tensor, sigma_max: float, generator: torch.Generator | None = None) -> Tensor:
    """x + delta with a noise level of its own for each image: sigma ~ U(0, sigma_max), delta ~ N(0, sigma^2 I)."""
    sigma = sigma_max * uniform(len(x), generator=generator, device=x.device, dtype=x.dtype)
    return add_gaussian_noise(x, sigma, generator)
