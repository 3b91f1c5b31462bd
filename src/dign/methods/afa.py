"""AFA, auxiliary Fourier augmentation (Vaish et al., 2024): images with waves."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.waves import add_waves
from dign.core.checks import check_at_least
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class AFA(Method):
    """Cross-entropy on the clean batch, and on the same images with a planar wave in each channel.

    Loss: L(f(x), y) + weight * L(f(clip(x + w)), y), w a wave of random frequency, direction and strength.

    Deviations: the second batch norm that the publication gives the images with waves is left out (`together=False`
    gives them statistics of their own while training); and the loss is the sum of the two, not their mean.

    Args:
        strength: Mean strength of the waves, 32 times their root mean square.
        weight: Weight of the cross-entropy of the images with waves.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> AFA(strength=5.0)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "afa"
    title = "AFA"
    cost = Cost(forward=2, backward=2)

    strength: float = 10.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_at_least(0, strength=self.strength, weight=self.weight)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [add_waves(x, self.strength, generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        waved = {"waved_cross_entropy": self.weight * self.cross_entropy(views[0], y)}
        return super().terms(clean, views, y) | waved
