"""DiGN without consistency regularization: the paper's ablation."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.noise import add_diverse_gaussian_noise
from dign.core.checks import check_at_least, check_fraction
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class DiGNWithoutCR(Method):
    """Cross-entropy under noise of diverse levels.

    Loss: L(f(x + d), y), d ~ N(0, s^2 I), with s ~ U(0, sigma_max) drawn for each image.

    Args:
        sigma_max: Largest noise level, in [0,1] pixel units.
        density: The probability of a value to be noisy; 0.2 with sigma_max 1.2 in the authors' code, not in the paper.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> DiGNWithoutCR(sigma_max=0.1)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "dign-without-cr"
    title = "DiGN w/o CR"
    sees_clean = False
    published = {"tiny-imagenet": {"sigma_max": 0.6}}
    cost = Cost(forward=1, backward=1)

    sigma_max: float = 0.2
    density: float = 1.0

    def __post_init__(self) -> None:
        check_at_least(0, sigma_max=self.sigma_max)
        check_fraction(density=self.density)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [add_diverse_gaussian_noise(x, self.sigma_max, generator, density=self.density)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"diversely_noisy_cross_entropy": self.cross_entropy(views[0], y)}
