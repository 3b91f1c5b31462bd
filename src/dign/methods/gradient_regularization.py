"""Input-gradient regularization by double backpropagation (Ross and Doshi-Velez, 2018)."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least
from dign.core.derivatives import dots, gradients
from dign.core.divergences import at_least_float32
from dign.methods.base import Method
from dign.methods.image_losses import cross_entropy_by_image
from dign.methods.labels import Labels
from dign.methods.passes import Cost


@dataclass(frozen=True, kw_only=True)
class GradientRegularization(Method):
    """Cross-entropy on the clean batch, and small gradients of it with respect to the image.

    Loss: L(f(x), y) + weight * mean_i ||grad_x L(f(x_i), y_i)||_2^2. The gradient is that of the pass which the
    cross-entropy comes from, so that the penalty needs no further forward pass.

    Args:
        weight: Weight of the penalty, for images in [0,1].

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> GradientRegularization(weight=0.1)(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "gradient-regularization"
    title = "GradReg"
    differentiates = True
    cost = Cost(forward=1, backward=2, input_only=1, second_order=1)

    weight: float = 0.001

    def __post_init__(self) -> None:
        check_at_least(0, weight=self.weight)

    def penalties(
        self, model: nn.Module, x: Tensor, y: Labels, clean: Tensor | None, generator: torch.Generator | None
    ) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        made = at_least_float32(gradients(cross_entropy_by_image(clean, y, len(x)), x))
        return {"gradient_penalty": self.weight * dots(made, made).mean()}
