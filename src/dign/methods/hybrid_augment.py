"""HybridAugment++ (Yucel et al., 2023): low frequencies of one image with the high frequencies of another."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.recombination import hybrid_paired, hybrid_single
from dign.methods.apr import RecombinationSettings
from dign.methods.base import Cost, Method
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class HybridAugment(RecombinationSettings, Method):
    """Cross-entropy on images after an operation, and on the same with the high frequencies of others.

    Loss: L(f(x_s), y) + weight * L(f(x_p), y). x_s is the image after one of AugMix's operations, and with probability
    `single` put together from low and high frequencies of itself and a copy after another operation, the low ones after
    APR. x_p is x_s, with probability `paired` with the high frequencies of its partner in the batch, and low ones that
    have, as often, the amplitudes of another; the label is that of the low frequencies' phases. In a sum x_s is the
    clean batch.

    Args:
        single: See `RecombinationSettings`, as for the other settings.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> list(HybridAugment()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['cross_entropy', 'hybrid_cross_entropy']
    """

    key = "hybridaugment"
    title = "HybridAugment++"
    moves_pixels = True

    @property
    def cost(self) -> Cost:
        passes = 2 if self.weight else 1
        return Cost(forward=passes, backward=passes)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        return hybrid_single(x, self.single, self.severity, generator), y

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [hybrid_paired(x, self.paired, generator)] if self.weight else []

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        terms = super().terms(clean, views, y)
        if views:
            terms["hybrid_cross_entropy"] = self.weight * self.cross_entropy(views[0], y)
        return terms
