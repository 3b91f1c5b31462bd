"""MixUp (Zhang et al., 2018): images and labels mixed in pairs."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.augment.chains import SMALLEST_SHAPE, dirichlet
from dign.augment.pairs import partners
from dign.core.checks import check_at_least
from dign.methods.base import Augmentation
from dign.methods.labels import Labels, mix_with_partners


@dataclass(frozen=True, kw_only=True)
class MixUp(Augmentation):
    """Cross-entropy on mixtures of two images each, whose labels are mixed alike.

    Loss: m L(f(x'), y) + (1 - m) L(f(x'), y_j) with x' = m x + (1 - m) x_j, m ~ Beta(alpha, alpha) drawn for each image
    and x_j its partner in the batch.

    Deviation: the published code draws m once for a batch.

    Args:
        alpha: Shape of the Beta distribution: 1 is uniform, small values leave most images nearly as they are.

    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> MixUp(alpha=0.2)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "mixup"
    title = "MixUp"
    moves_pixels = True

    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_at_least(SMALLEST_SHAPE, alpha=self.alpha)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        share = dirichlet(len(x), 2, self.alpha, x.device, generator)[:, 0]
        return mixup(x, share), mix_with_partners(y, share)


def mixup(x: Tensor, share: Tensor) -> Tensor:
    """`share` (N,) of each image and 1 - `share` of its partner.

    >>> mixup(torch.tensor([0.0, 1.0]).view(2, 1, 1, 1), torch.tensor([0.75, 1.0])).flatten()
    tensor([0.2500, 1.0000])
    """
    return torch.lerp(partners(x), x, share.to(x.dtype).view(-1, 1, 1, 1))
