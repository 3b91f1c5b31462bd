"""DiGN: diverse Gaussian noise consistency regularisation, equation (6) and Algorithm 1."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dign.augment.noise import add_diverse_gaussian_noise
from dign.divergences import kl, log_probabilities
from dign.errors import UserError, check_at_least
from dign.methods.base import Cost, Method


@dataclass(frozen=True, kw_only=True)
class DiGN(Method):
    """Cross-entropy on the clean batch, and predictions that agree under noise of diverse levels.

    Loss: L(f(x), y) + weight * mean_k D(p(x) ‖ p(x + d_k)), k = 1..samples, with d_k ~ N(0, s^2 I) and
    s ~ U(0, sigma_max) drawn for each image and each k. Gradients flow through p(x) as well.

    `weight` is the paper's lambda and `samples` its n. `sigma_max` is in [0,1] pixel units. Not in the paper: `ramp`,
    the fraction of training over which the weight grows from 0, and `share`, the part of the batch (its first images;
    batches are shuffled) that has noisy branches, whose mean the consistency is: half costs half as much.
    """

    key = "dign"
    title = "DiGN"
    published = {"tiny-imagenet": {"sigma_max": 0.6}}

    sigma_max: float = 0.2
    weight: float = 0.2
    samples: int = 3
    ramp: float = 0.0
    share: float = 1.0

    def __post_init__(self) -> None:
        check_at_least(0, sigma_max=self.sigma_max, weight=self.weight, ramp=self.ramp)
        check_at_least(1, samples=self.samples)
        if not 0 < self.share <= 1:
            raise UserError(f"share is a part of the batch, above 0 and at most 1, not {self.share}.")

    @property
    def cost(self) -> Cost:
        return Cost(forward=1 + self.share * self.samples, backward=1 + self.share * self.samples)

    def views(self, model: nn.Module, x: Tensor, y: Tensor, generator: torch.Generator | None) -> list[Tensor]:
        chosen = x[: math.ceil(self.share * len(x))]
        return [add_diverse_gaussian_noise(chosen, self.sigma_max, generator) for _ in range(self.samples)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Tensor) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        log_p = log_probabilities(clean[: len(views[0])])
        divergence = torch.stack([kl(log_p, log_probabilities(noisy)).mean() for noisy in views]).mean()
        return {"cross_entropy": self.cross_entropy(clean, y), "consistency": self.weight * divergence}

    def at(self, progress: float) -> Method:
        return replace(self, weight=self.weight * progress / self.ramp) if progress < self.ramp else self
