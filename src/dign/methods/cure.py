"""CURE: curvature regularization (Moosavi-Dezfooli et al., 2019)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least, check_fraction
from dign.core.derivatives import gradient_change, norms, per_image, trainable_parameter, values_and_gradients
from dign.core.divergences import at_least_float32
from dign.core.freezing import still_temporarily
from dign.methods.base import Method
from dign.methods.image_losses import image_losses
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class CURE(Method):
    """Cross-entropy on the clean batch, and gradients with respect to the image that hardly turn on the steepest way.

    Loss: L(f(x), y) + weight * mean_i ||grad_x L(x_i + step * z_i) - grad_x L(x_i)||_2 with z = sign(grad_x L(x)),
    scaled to length one: a finite difference of the Hessian's product with z. Batch norms take the statistics of each
    batch for it, and record none (`dign.core.freezing.still_temporarily`).

    Args:
        weight: Weight of the penalty, the publication's gamma.
        step: Length of the step in l2, in [0,1] pixel units, the publication's h.
        ramp: Fraction of training over which the step grows to its length from a thirtieth of it.
        squared: Penalize the square of the norm, as the publication writes it; its code penalizes the norm.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> CURE(step=1.5)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "cure"
    title = "CURE"
    cost = Cost(forward=3, backward=5, input_only=2, second_order=2)

    weight: float = 4.0
    step: float = 3.0
    ramp: float = 0.0
    squared: bool = False

    def __post_init__(self) -> None:
        check_at_least(0, weight=self.weight, step=self.step)
        check_fraction(ramp=self.ramp)

    def penalties(
        self, model: nn.Module, x: Tensor, y: Labels, clean: Tensor | None, generator: torch.Generator | None
    ) -> dict[str, Tensor]:
        with still_temporarily(model):
            loss = image_losses(model, y)
            anchor = trainable_parameter(model)
            _, here = values_and_gradients(loss, x, anchor)
            change = gradient_change(loss, x, self.step * _unit_signs(here.detach()), here, anchor)
        size = norms(at_least_float32(change))
        return {"curvature_penalty": self.weight * (size.square() if self.squared else size).mean()}

    def at(self, progress: float) -> Method:
        """The method with the step it has when the fraction `progress` of training is done.

        >>> round(CURE(step=3.0, ramp=0.5).at(0.25).step, 2)
        1.55
        """
        grown = min(1.0, progress / self.ramp) if self.ramp else 1.0
        return replace(self, ramp=0.0, step=self.step * (1 + 29 * grown) / 30)


def _unit_signs(v: Tensor) -> Tensor:
    """The signs of each image, scaled to length one; zero where all are zero."""
    signs = v.sign()
    return signs / per_image(norms(signs).clamp(min=1.0), v)
