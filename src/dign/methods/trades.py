"""TRADES (Zhang et al., 2019), equation (3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least
from dign.core.divergences import kl, log_probabilities
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of
from dign.methods.attacks import PGDSettings
from dign.methods.base import Method
from dign.methods.batch_checks import class_rows
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class TRADES(PGDSettings, Method):
    """Cross-entropy on the clean batch, and predictions that agree at the worst point nearby.

    Loss: L(f(x), y) + weight * max over ||d|| <= radius of D(p(x) ‖ p(x + d)), d found by PGD. Gradients flow through
    p(x) as well. The attack starts from a small random point, as that of TRADES' authors does: at d = 0 the divergence
    has no gradient (the published DiGN experiments started there).

    Args:
        weight: The paper's lambda.
        start: Where the attack starts. The other settings of the attack are those of `PGDSettings`.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> list(TRADES(weight=6.0)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['cross_entropy', 'adversarial_consistency']
    """

    key = "trades"
    title = "TRADES"

    weight: float = 3.0
    start: str = "gaussian"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, weight=self.weight)

    @property
    def cost(self) -> Cost:
        # One more forward pass computes the attack's target p(x), in eval mode, once for all steps.
        return Cost(forward=self.steps + 3, backward=self.steps + 2, input_only=self.steps)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        with freeze_temporarily(model), torch.no_grad():
            log_p = log_probabilities(class_rows(logits_of(model(x)), y))

        def divergence(logits: Tensor) -> Tensor:
            return kl(log_p, log_probabilities(class_rows(logits, y)))

        return [self.attack(model, x, divergence, generator)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        divergence = kl(log_probabilities(clean), log_probabilities(views[0])).mean()
        return {"cross_entropy": self.cross_entropy(clean, y), "adversarial_consistency": self.weight * divergence}
