"""What APR-SP and HybridAugment++ share: images put together from two, in two terms of the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least, check_fraction
from dign.core.errors import UserError
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class Recombination(Method):
    """Cross-entropy on images put together from themselves, and on the same put together with others.

    Loss: L(f(x_s), y) + weight * L(f(x_p), y). x_s is the image after one of AugMix's operations, put together with a
    copy after another one with probability `single`; x_p is x_s, put together with another image of the batch with
    probability `paired`. In a sum x_s is the clean batch.

    Args:
        single: How many images are put together from themselves and an augmented copy.
        paired: How many are put together from two images of the batch.
        severity: Bound of the levels of AugMix's operations, 0.1 to 10.
        weight: Weight of the cross-entropy of the paired images. A weight of 0 needs no pass for them, and has none.
    """

    moves_pixels = True
    pairs: ClassVar[str]
    """What the term of the paired images is called."""

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

    def combine_single(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """x_s, from images (N,3,H,W)."""
        raise NotImplementedError

    def combine_paired(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        """x_p, from x_s."""
        raise NotImplementedError

    @property
    def cost(self) -> Cost:
        passes = 2 if self.weight else 1
        return Cost(forward=passes, backward=passes)

    def augment(self, x: Tensor, y: Labels, generator: torch.Generator | None) -> tuple[Tensor, Labels]:
        return self.combine_single(x, generator), y

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [self.combine_paired(x, generator)] if self.weight else []

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        terms = super().terms(clean, views, y)
        if views:
            terms[self.pairs] = self.weight * self.cross_entropy(views[0], y)
        return terms
