"""Random self-ensemble (Liu et al., 2018) with noise at the input layer, equation (4)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.noise import add_gaussian_noise
from dign.core.checks import check_at_least, check_integer
from dign.methods.base import Method
from dign.methods.batch_checks import check_images
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class RSE(Method):
    """Cross-entropy under noise of one fixed level, and an ensemble over the same noise at test time.

    Loss: L(f(x + d), y) with d ~ N(0, sigma^2 I). Prediction: mean over `ensemble` draws of p(x + d).
    Deviation: the published code averages logits; the paper, and this class, probabilities.

    Args:
        sigma: Noise level, in [0,1] pixel units.
        ensemble: Draws averaged in a prediction.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> method = RSE(sigma=0.1)
    >>> method(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    >>> method.predict(model, torch.rand(4, 3, 8, 8)).shape
    torch.Size([4, 10])
    """

    key = "rse"
    title = "RSE"
    sees_clean = False
    published = {"tiny-imagenet": {"sigma": 0.3}}
    cost = Cost(forward=1, backward=1)

    sigma: float = 0.1
    ensemble: int = 10

    def __post_init__(self) -> None:
        check_at_least(0, sigma=self.sigma)
        check_integer(1, ensemble=self.ensemble)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [add_gaussian_noise(x, self.sigma, generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"noisy_cross_entropy": self.cross_entropy(views[0], y)}

    def predict(self, model: nn.Module, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        check_images(x)
        draws = (add_gaussian_noise(x, self.sigma, generator) for _ in range(self.ensemble))
        return torch.stack([super(RSE, self).predict(model, noisy) for noisy in draws]).mean(0)
