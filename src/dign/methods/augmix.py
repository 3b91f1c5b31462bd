"""AugMix (Hendrycks et al., 2020), equation (5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.augment.chains import NINE, OPERATIONS, chains, dirichlet, draw_severities, mix
from dign.core.checks import check_at_least, check_integer
from dign.core.divergences import jensen_shannon, log_probabilities
from dign.core.errors import UserError, unknown_name
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class ChainSettings:
    """How AugMix's mixtures are made, for the methods that use them.

    Args:
        width: Chains of operations that are mixed.
        depth: Operations in a chain; None draws 1 to 3 for each chain.
        severity: Bound of the levels that operations draw; None draws it from 1..10 for each view of each image, as the
            DiGN experiments did. AugMix's authors fix it at 3.
        alpha: The chains' weights are Dirichlet(alpha), the mixture's share against the clean image Beta(alpha, alpha).
        operations: Names of the operations that a chain is drawn from, out of `dign.augment.chains.OPERATIONS`.

    >>> ChainSettings(severity=3, operations=("rotate", "posterize")).width
    3
    """

    width: int = 3
    depth: int | None = None
    severity: float | None = None
    alpha: float = 1.0
    operations: tuple[str, ...] = NINE

    def __post_init__(self) -> None:
        check_integer(1, width=self.width, depth=1 if self.depth is None else self.depth)
        check_at_least(0.1, severity=1 if self.severity is None else self.severity, alpha=self.alpha)
        if self.severity is not None and self.severity > 10:
            raise UserError(f"severity must be at most 10, not {self.severity}.")
        object.__setattr__(self, "operations", tuple(self.operations))  # a list from a configuration file
        if not self.operations:
            raise UserError(f"operations must name at least one of {', '.join(OPERATIONS)}.")
        for name in self.operations:
            if name not in OPERATIONS:
                raise unknown_name("operation", name, OPERATIONS)

    def chains(self, x: Tensor, views: int, generator: torch.Generator | None) -> tuple[Tensor, ...]:
        """For each of `views`, every image at the end of `width` chains, uint8 (N,width,3,H,W)."""
        severity: Tensor | float | None = self.severity
        if severity is None:
            severity = draw_severities(x, views, generator=generator).repeat_interleave(self.width, dim=1)
        chained = chains(
            x, views * self.width, depth=self.depth, severity=severity, operations=self.operations, generator=generator
        )
        by_view: tuple[Tensor, ...] = chained.split(self.width, dim=1)
        return by_view

    def mix(self, x: Tensor, chained: Tensor, generator: torch.Generator | None) -> Tensor:
        """The chains (N,width,3,H,W) of each image, mixed with random weights and with the image itself."""
        weights = dirichlet(len(x), self.width, self.alpha, x.device, generator)
        share = dirichlet(len(x), 2, self.alpha, x.device, generator)[:, 0]
        return mix(x, chained, weights, share)


@dataclass(frozen=True, kw_only=True)
class AugMix(ChainSettings, Method):
    """Cross-entropy on the clean batch, and predictions that agree on two mixtures of random operations.

    Loss: L(f(x), y) + weight * JS(p(x); p(x_1); p(x_2)), x_1 and x_2 mixtures of chains of image operations.

    Args:
        weight: Weight of the divergence. The other settings are those of `ChainSettings`.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> AugMix(severity=3)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "augmix"
    title = "AugMix"
    moves_pixels = True
    cost = Cost(forward=3, backward=3)

    weight: float = 12.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, weight=self.weight)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        return [self.mix(x, chained, generator) for chained in self.chains(x, 2, generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        divergence = jensen_shannon(*map(log_probabilities, (clean, *views))).mean()
        return {"cross_entropy": self.cross_entropy(clean, y), "augmix_consistency": self.weight * divergence}
