"""LLR: local linearity regularization (Qin et al., 2019)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least
from dign.core.derivatives import dots, per_image, trainable_parameter, values_and_gradients
from dign.core.divergences import at_least_float32
from dign.core.freezing import freeze_temporarily, still_temporarily
from dign.methods.attacks import PGDSettings, losses_and_gradients, project, start_in_ball, steepest
from dign.methods.base import Method
from dign.methods.image_losses import image_losses
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class LLR(PGDSettings, Method):
    """Cross-entropy on the clean batch, and a loss that is linear in the image, and flat, in a ball around it.

        L(x) + weight * mean g(d*) + slope_weight * mean abs(d* . grad_x L(x)),
        g(d) = abs(L(x + d) - L(x) - d . grad_x L(x)),   d* = argmax of g over norm(d) <= radius

    g is the distance of the loss from its tangent. d* is found by gradient ascent from a random point: at d = 0 the
    distance has no gradient. Batch norms take the statistics of each batch for the penalties, and record none
    (`dign.core.freezing.still_temporarily`).

    Args:
        weight: Weight of the distance, the publication's lambda.
        slope_weight: Weight of the slope, the publication's mu.
        steps: Steps of the ascent.
        start: Where the ascent starts. The other settings of the ascent are those of `PGDSettings`.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> list(LLR(steps=2)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).terms)
    ['cross_entropy', 'nonlinearity', 'slope']
    """

    key = "llr"
    title = "LLR"

    weight: float = 4.0
    slope_weight: float = 3.0
    steps: int = 10
    start: str = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, weight=self.weight, slope_weight=self.slope_weight)

    @property
    def cost(self) -> Cost:
        # Beside the clean pass: L(x) with its gradient, which the ascent uses too; the ascent; and L(x + d).
        return Cost(forward=self.steps + 3, backward=self.steps + 4, input_only=self.steps + 1, second_order=1)

    def penalties(
        self, model: nn.Module, x: Tensor, y: Labels, clean: Tensor | None, generator: torch.Generator | None
    ) -> dict[str, Tensor]:
        with still_temporarily(model):
            loss = image_losses(model, y)
            value, gradient = values_and_gradients(loss, x, trainable_parameter(model))
            d = self._worst(model, x, y, value.detach(), gradient.detach(), generator)
            slope = dots(d, at_least_float32(gradient))
            distance = (loss(x + d) - value - slope).abs()
        return {
            "nonlinearity": self.weight * distance.mean(),
            "slope": self.slope_weight * slope.abs().mean(),
        }

    def _worst(
        self, model: nn.Module, x: Tensor, y: Labels, value: Tensor, gradient: Tensor, generator: torch.Generator | None
    ) -> Tensor:
        """The d of the ball at which the loss is farthest from its tangent at x."""
        start = start_in_ball(x, self.norm, self.radius, self.start, generator)
        d = project(start, x, self.norm, self.radius, self.clip)
        step_size = 2.5 * self.radius / self.steps if self.step_size is None else self.step_size
        with freeze_temporarily(model, keep_mode=True), torch.no_grad():
            for _ in range(self.steps):
                losses, there = losses_and_gradients(image_losses(model, y), x + d)
                side = (losses - value - dots(d, gradient)).sign()
                up = per_image(side, x).to(x) * (there - gradient)
                d = project(d + step_size * steepest(up, self.norm), x, self.norm, self.radius, self.clip)
        return d
