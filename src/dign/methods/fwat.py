"""Frank-Wolfe adversarial training, and FW-AT-Adapt (Tsiligkaridis and Roberts, 2022)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least, check_integer
from dign.core.derivatives import norms
from dign.core.errors import UserError, unknown_name
from dign.methods.attacks import NORMS, cross_entropy_of, frank_wolfe
from dign.methods.base import Method
from dign.methods.labels import Labels
from dign.methods.passes import Cost

MOST_STEPS = 15
"""Steps of the attack at most, where they are adapted."""


@dataclass(frozen=True, kw_only=True)
class FWAT(Method):
    """Cross-entropy on a batch attacked by Frank-Wolfe steps, whose number may follow the attack's distortion.

    Loss: L(f(x + d), y), d made by `steps` steps d <- (1 - g_k) d + g_k * radius * sign(grad_x L(x + d)) with
    g_k = c / (c + k), from zero: a mean of corners of the ball, never projected, and not clipped to [0,1].

    With `min_distortion` the number of steps is adapted (FW-AT-Adapt): each epoch begins with two steps, until a
    thousand images were seen. If their mean distortion ||d||_2 / (radius * sqrt(dimensions)) is at least
    `min_distortion`, the loss is close to linear there and the rest of the epoch takes half the steps of the epoch
    before; otherwise `growth` more. `dign.train` does this; in a loop of your own, call `method.probing()` and
    `method.adapted({"distortion": mean})`.

    Args:
        norm: The ball's norm, "linf" or "l2".
        radius: The ball's radius, in [0,1] pixel units.
        steps: Steps of the attack. With `min_distortion`, those that the first epoch is adapted from: 1 as published.
        c: How fast later steps get shorter.
        min_distortion: The distortion from which on steps are saved, e.g. 0.9; None keeps their number.
        growth: Steps that are added where the distortion is lower.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> list(FWAT(steps=2)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['frank_wolfe_cross_entropy']
    """

    key = "fwat"
    title = "FW-AT"
    sees_clean = False

    norm: str = "linf"
    radius: float = 8 / 255
    steps: int = 7
    c: float = 2.0
    min_distortion: float | None = None
    growth: int = 1

    def __post_init__(self) -> None:
        check_at_least(0, radius=self.radius)
        check_at_least(0.1, c=self.c)
        check_integer(1, steps=self.steps, growth=self.growth)
        if self.norm not in NORMS:
            raise unknown_name("norm", self.norm, NORMS)
        if self.min_distortion is not None:
            check_at_least(0, min_distortion=self.min_distortion)
            if self.norm != "linf":
                raise UserError("min_distortion is for norm 'linf': in 'l2' a distortion says nothing of linearity.")

    @property
    def cost(self) -> Cost:
        return Cost(forward=self.steps + 1, backward=self.steps + 1, input_only=self.steps)

    def views(self, model: nn.Module, x: Tensor, y: Labels, generator: torch.Generator | None) -> list[Tensor]:
        objective, ball = cross_entropy_of(y), (self.norm, self.radius)
        return [frank_wolfe(model, x, objective, *ball, steps=self.steps, c=self.c)]

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Labels) -> dict[str, Tensor]:
        return {"frank_wolfe_cross_entropy": self.cross_entropy(views[0], y)}

    @property
    def probe_images(self) -> int:
        return 0 if self.min_distortion is None else 1000

    def probing(self) -> Method:
        return replace(self, steps=2)

    def measure(self, x: Tensor, views: Sequence[Tensor]) -> dict[str, Tensor]:
        return {} if self.min_distortion is None else {"distortion": distortion(views[0] - x, self.radius).mean()}

    def adapted(self, measured: Mapping[str, float]) -> Method:
        """The method with the steps that follow from a mean distortion.

        >>> FWAT(steps=6, min_distortion=0.9).adapted({"distortion": 0.95}).steps
        3
        """
        assert self.min_distortion is not None  # there is nothing to adapt
        if measured["distortion"] >= self.min_distortion:
            return replace(self, steps=max(1, self.steps // 2))
        return replace(self, steps=min(MOST_STEPS, self.steps + self.growth))


def distortion(delta: Tensor, radius: float) -> Tensor:
    """||d||_2 of each image (N,), as a fraction of the longest d in the l_inf ball: radius * sqrt(dimensions).

    It is 1 where all steps of an attack had the same signs, as they have on a linear loss.

    >>> round(distortion(torch.full((1, 3, 8, 8), 0.1), 0.1).item(), 4)
    1.0
    """
    longest: float = max(radius * math.sqrt(delta[0].numel()), 1e-12)
    return norms(delta) / longest
