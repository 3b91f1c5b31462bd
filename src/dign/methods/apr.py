"""APR-SP (Chen et al., 2021): amplitudes of one image with the phases of another."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.recombination import recombine_paired, recombine_single
from dign.methods.recombination import Recombination


@dataclass(frozen=True, kw_only=True)
class APR(Recombination):
    """Cross-entropy on images after an operation, and on the same with the amplitudes of others.

    Loss: L(f(x_s), y) + weight * L(f(x_p), y). x_s is the image after one of AugMix's operations, and with probability
    `single` with the amplitudes or the phases of a copy after another one. x_p is x_s, with probability `paired` with
    the amplitudes of its partner in the batch; the label is that of the phases. In a sum x_s is the clean batch.

    Args:
        single: See `Recombination`, as for the other settings.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> list(APR()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['cross_entropy', 'paired_cross_entropy']
    """

    key = "apr"
    title = "APR-SP"
    pairs = "paired_cross_entropy"

    def combine_single(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return recombine_single(x, self.single, self.severity, generator)

    def combine_paired(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        return recombine_paired(x, self.paired, generator)
