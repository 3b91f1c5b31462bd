"""APR-SP (Chen et al., 2021): amplitudes of one image with the phases of another."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.recombination import recombine_paired, recombine_single
from dign.core.checks import check_at_least, check_fraction
from dign.core.errors import UserError
from dign.methods.base import Cost, Method
from dign.methods.labels import Labels


@dataclass(frozen=True, kw_only=True)
class RecombinationSettings:
    """How often images are put together from two, for the methods that do so.

    Args:
        single: How many images are put together from themselves and an augmented copy.
        paired: How many are put together from two images of the batch.
        severity: Bound of the levels of AugMix's operations, 0.1 to 10.
        weight: Weight of the cross-entropy of the paired images. A weight of 0 needs no pass for them, and has none.

    >>> RecombinationSettings(paired=1.0).single
    0.5
    """

    single: float = 0.5
    paired: float = 0.6
    severity: float = 3.0
    weight: float = 1.0

    def __post_init__(self) -> None:
        check_fraction(single=self.single, paired=self.paired)
        check_at_least(0.1, severity=self.severity)
        check_at_least(0, weight=self.weight)
        if self.severity > 10:
            raise UserError(f"severity must be at most 10, not {self.severity}.")


@dataclass(frozen=True, kw_only=True)
class APR(RecombinationSettings, Method):
    """Cross-entropy on images after an operation, and on the same with the amplitudes of others.

    Loss: L(f(x_s), y) + weight * L(f(x_p), y). x_s is the image after one of AugMix's operations, and with probability
    `single` with the amplitudes or the phases of a copy after another one. x_p is x_s, with probability `paired` with
    the amplitudes of its partner in the batch; the label is that of the phases. In a sum x_s is the clean batch.

    Args:
        single: See `RecombinationSettings`, as for the other settings.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> list(APR()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['cross_entropy', 'paired_cross_entropy']
    """

    key = "apr"
    title = "APR-SP"
    moves_pixels = True

    @property
    def cost(self) -> Cost:
        passes = 2 if self.weight else 1
        return Cost(forward=passes, backward=passes)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        return recombine_single(x, self.single, self.severity, generator), y

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [recombine_paired(x, self.paired, generator)] if self.weight else []

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        terms = super().terms(clean, views, y)
        if views:
            terms["paired_cross_entropy"] = self.weight * self.cross_entropy(views[0], y)
        return terms
