"""PRIME (Modas et al., 2022): mixtures of random filters, deformations and color curves."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.primitives import mix_primitives
from dign.core.checks import check_at_least, check_integer
from dign.core.divergences import jensen_shannon, log_probabilities
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class PRIME(Method):
    """Cross-entropy on the clean batch, and predictions that agree on two mixtures of random transforms.

    Loss: L(f(x), y) + weight * JS(p(x); p(x_1); p(x_2)), x_1 and x_2 mixtures of chains of random 3x3 filters, smooth
    deformations and color curves.

    Args:
        weight: Weight of the divergence.
        width: Chains that are mixed.
        depth: Transforms in a chain; None draws 1 to 3 for each chain.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> PRIME()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "prime"
    title = "PRIME"
    moves_pixels = True
    cost = Cost(forward=3, backward=3)

    weight: float = 12.0
    width: int = 3
    depth: int | None = None

    def __post_init__(self) -> None:
        check_at_least(0, weight=self.weight)
        check_integer(1, width=self.width, depth=1 if self.depth is None else self.depth)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return list(mix_primitives(x, 2, width=self.width, depth=self.depth, generator=generator))

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        divergence = jensen_shannon(*map(log_probabilities, (clean, *views))).mean()
        return super().terms(clean, views, y) | {"prime_consistency": self.weight * divergence}
