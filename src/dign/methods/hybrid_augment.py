"""HybridAugment++ (Yucel et al., 2023): low frequencies of one image with the high frequencies of another."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.recombination import hybrid_paired, hybrid_single
from dign.methods.recombination import Recombination


@dataclass(frozen=True, kw_only=True)
class HybridAugment(Recombination):
    """Cross-entropy on images after an operation, and on the same with the high frequencies of others.

    Loss: L(f(x_s), y) + weight * L(f(x_p), y). x_s is the image after one of AugMix's operations, and with probability
    `single` put together from low and high frequencies of itself and a copy after another operation, the low ones after
    APR. x_p is x_s, with probability `paired` with the high frequencies of its partner in the batch, and low ones that
    have, as often, the amplitudes of another; the label is that of the low frequencies' phases. In a sum x_s is the
    clean batch.

    Args:
        single: See `Recombination`, as for the other settings.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> list(HybridAugment()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['cross_entropy', 'hybrid_cross_entropy']
    """

    key = "hybridaugment"
    title = "HybridAugment++"
    pairs = "hybrid_cross_entropy"

    def combine_single(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return hybrid_single(x, self.single, self.severity, generator)

    def combine_paired(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return hybrid_paired(x, self.paired, generator)
