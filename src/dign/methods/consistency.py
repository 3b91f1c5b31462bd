"""Consistency regularization for certificates (Jeong and Shin, 2020)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.noise import add_gaussian_noise
from dign.core.checks import check_at_least, check_integer
from dign.core.divergences import kl, log_probabilities
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class Consistency(Method):
    """Cross-entropy under noise of one level, and predictions that agree from noisy copy to noisy copy.

    Loss: mean_k L(f(x + d_k), y) + weight * mean_k D(p || p_k) + entropy_weight * H(p), d_k ~ N(0, sigma^2 I),
    k = 1..samples, with p_k the prediction for copy k and p the mean of them. A model that is right under noise of one
    level, whichever noise is drawn, is what `dign.certify` certifies far.

    Args:
        sigma: Noise level, in [0,1] pixel units: the one to certify with.
        weight: Weight of the agreement, the publication's lambda.
        entropy_weight: Weight of the mean prediction's entropy, the publication's eta.
        samples: Noisy copies of each image, the publication's m.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> Consistency(sigma=0.12)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "consistency"
    title = "Consistency"
    sees_clean = False

    sigma: float = 0.25
    weight: float = 10.0
    entropy_weight: float = 0.5
    samples: int = 2

    def __post_init__(self) -> None:
        check_at_least(0, sigma=self.sigma, weight=self.weight, entropy_weight=self.entropy_weight)
        check_integer(2, samples=self.samples)

    @property
    def cost(self) -> Cost:
        return Cost(forward=self.samples, backward=self.samples)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [add_gaussian_noise(x, self.sigma, generator) for _ in range(self.samples)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        log_ps = torch.stack([log_probabilities(noisy) for noisy in views])
        bounded = log_ps.clamp(min=torch.finfo(log_ps.dtype).min)  # a class that is masked has a derivative of 0
        log_mean = torch.logsumexp(bounded, dim=0) - math.log(len(views))
        uniform = torch.full_like(log_mean, -math.log(log_mean.shape[-1]))
        entropy = math.log(log_mean.shape[-1]) - kl(log_mean, uniform).mean()
        return {
            "cross_entropy_of_copies": torch.stack([self.cross_entropy(noisy, y) for noisy in views]).mean(),
            "agreement": self.weight * kl(log_mean.expand_as(log_ps), log_ps).mean(),
            "entropy": self.entropy_weight * entropy,
        }
