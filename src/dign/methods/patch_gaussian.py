"""Patch Gaussian (Lopes et al., 2019): noise in a square of every image."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.noise import add_diverse_gaussian_noise
from dign.core.checks import check_at_least, check_fraction
from dign.methods.base import Augmentation
from dign.methods.cutout import draw_squares
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class PatchGaussian(Augmentation):
    """Cross-entropy on images with noise in a square: L(f(x'), y), x' = clip(x + d) inside it and x outside.

    d ~ N(0, s^2 I) with s ~ U(0, sigma_max) drawn for each image. The center of the square is any pixel of the image,
    so that part of it may be outside.

    Args:
        side: Side of the square as a fraction of the image's shorter side. Published: 25 of 32 pixels.
        sigma_max: Largest noise level, in [0,1] pixel units.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> PatchGaussian(side=0.5)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "patch-gaussian"
    title = "Patch Gaussian"

    side: float = 0.78125
    sigma_max: float = 1.0

    def __post_init__(self) -> None:
        check_fraction(side=self.side)
        check_at_least(0, sigma_max=self.sigma_max)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        inside = draw_squares(x, self.side, generator)
        return torch.where(inside, add_diverse_gaussian_noise(x, self.sigma_max, generator).clamp_(0, 1), x), y
