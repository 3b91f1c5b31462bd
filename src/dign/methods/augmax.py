"""AugMax (Wang et al., 2021): AugMix with one of its mixtures made as hard as the mixing weights allow."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least, check_integer
from dign.core.divergences import jensen_shannon, log_probabilities
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import uniform
from dign.core.pixels import to_float
from dign.methods.attacks import ascent, cross_entropy_of
from dign.methods.augmix import ChainSettings
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class AugMax(ChainSettings, Method):
    """Cross-entropy on the clean batch, and predictions that agree on a random and on a worst-case mixture.

    Loss: L(f(x), y) + weight * JS(p(x); p(x_mix); p(x_max)). x_mix is a mixture as AugMix makes it. x_max mixes further
    chains with weights found by gradient ascent on L, from a random start: on the mixture's share m in [0,1] and on q,
    whose softmax weighs the chains.

    Deviation: the dual batch norm of AugMax's authors is left out, as in the DiGN experiments.

    Args:
        weight: Weight of the divergence.
        steps: Steps of the ascent.
        step_size: Length of a step, which follows the gradient's sign. The other settings are those of `ChainSettings`.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> AugMax(steps=5)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "augmax"
    title = "AugMax"
    moves_pixels = True

    weight: float = 12.0
    steps: int = 10
    step_size: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, weight=self.weight, step_size=self.step_size)
        check_integer(1, steps=self.steps)

    @property
    def cost(self) -> Cost:
        return Cost(forward=3 + self.steps, backward=3 + self.steps, input_only=self.steps)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        random, hard = self.chains(x, 2, generator)
        return [self.mix(x, random, generator), self._worst_mixture(model, x, y, hard, generator)]

    def _worst_mixture(
        self, model: nn.Module, x: Tensor, y: Labels, chained: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        start = uniform(len(x), 1 + self.width, generator=generator, device=x.device, dtype=x.dtype)
        share, q = start.split((1, self.width), dim=1)
        chained, objective = to_float(chained, x.dtype), cross_entropy_of(y)
        with freeze_temporarily(model), torch.no_grad():
            for _ in range(self.steps):
                up_share, up_q = ascent(model, lambda m, w: _mixture(x, chained, w, m), objective, (share, q))
                share = (share + self.step_size * up_share.sign()).clamp(0, 1)
                q = q + self.step_size * up_q.sign()
        return _mixture(x, chained, q, share)

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        divergence = jensen_shannon(*map(log_probabilities, (clean, *views))).mean()
        return {"cross_entropy": self.cross_entropy(clean, y), "augmax_consistency": self.weight * divergence}


def _mixture(x: Tensor, chained: Tensor, q: Tensor, share: Tensor) -> Tensor:
    """(1 - share) * x + share * sum_i softmax(q)_i * chain_i; chained (N,width,3,H,W) in [0,1], share (N,1)."""
    mixture = (q.softmax(1)[..., None, None, None] * chained).sum(1)
    return torch.lerp(x, mixture, share[..., None, None])
