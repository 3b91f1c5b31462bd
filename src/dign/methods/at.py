"""Adversarial training (Madry et al., 2018), equation (2)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.methods.attacks import PGDSettings, cross_entropy_of
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class AT(PGDSettings, Method):
    """Cross-entropy on the attacked batch: max over ||d|| <= radius of L(f(x + d), y), d found by PGD.

    The model does not see the clean batch. The attack maximizes the plain cross-entropy, without label smoothing. Its
    settings are those of `PGDSettings`.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> list(AT(radius=4 / 255)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['adversarial_cross_entropy']
    """

    key = "at"
    title = "AT"
    sees_clean = False

    @property
    def cost(self) -> Cost:
        return Cost(forward=self.steps + 1, backward=self.steps + 1, input_only=self.steps)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [self.attack(model, x, cross_entropy_of(y), generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"adversarial_cross_entropy": self.cross_entropy(views[0], y)}
