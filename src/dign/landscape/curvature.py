"""The Hessian of the loss with respect to the image, H = grad_x^2 L(x, y), seen through its products with vectors.

H is one (d,d) block per image and is never formed. Two ways lead to H v:

- double backward: exact at the point x. A network of ReLUs is linear around almost every x, and this is the Hessian
  of that piece; the kinks around it do not show.
- centered differences of gradients (the paper's way): the mean Hessian over a segment of length 2 eta ||v||. It sees
  the kinks that the segment crosses. Each is a jump of the gradient, so that for a network with kinks the estimate
  does not settle but grows like 1/eta: eta is the scale at which the landscape is looked at, and belongs to the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least
from dign.core.derivatives import Hessian, dots, norms
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.core.seeds import make_generator
from dign.landscape.gradients import (
    PerImage,
    check_batch,
    check_logits,
    cross_entropy,
    input_gradients,
    traced_log_probabilities,
)


@dataclass(frozen=True)
class Estimate:
    """A mean over random draws per image (N,), and the standard error of that mean (N,), NaN for a single draw."""

    value: Tensor
    standard_error: Tensor

    @classmethod
    def of(cls, draws: Tensor) -> Estimate:
        """From draws (K,N)."""
        spread = draws.std(0) if len(draws) > 1 else torch.full_like(draws[0], torch.nan)
        return cls(draws.mean(0), spread / len(draws) ** 0.5)


@contextmanager
def hessian(model: nn.Module, x: Tensor, y: Tensor) -> Iterator[Hessian]:
    """The Hessian of the cross-entropy at each image, for products `h @ v`; the model is frozen inside the block."""
    check_batch(x, y)
    with hessian_of(model, x, lambda log_p: cross_entropy(y)(check_logits(log_p, x, y))) as h:
        yield h


@contextmanager
def hessian_of(model: nn.Module, x: Tensor, function: PerImage) -> Iterator[Hessian]:
    """The same for any per-image function of the log-probabilities."""
    with freeze_temporarily(model), torch.enable_grad():
        inputs, log_p = traced_log_probabilities(model, x)
        yield Hessian(inputs, function(log_p))


def hessian_vector_product(model: nn.Module, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
    """H v of each image by double backward, (N,...) to (N,...). Cost: about three gradient evaluations."""
    with hessian(model, x, y) as h:
        return h @ v


def hessian_traces(
    model: nn.Module, x: Tensor, y: Tensor, *, draws: int = 16, generator: torch.Generator | None = None
) -> tuple[Estimate, Estimate]:
    """Tr(H) and Tr(H^2) of each image by Hutchinson's estimator, from the same products.

    With z of independent signs: Tr(H) = E z^T H z and Tr(H^2) = E ||H z||^2. The standard error falls with the
    root of `draws`. Cost: one gradient evaluation and one Hessian-vector product per draw.
    """
    with hessian(model, x, y) as h:
        return traces(h, draws=draws, generator=generator)


def traces(h: Hessian, *, draws: int, generator: torch.Generator | None = None) -> tuple[Estimate, Estimate]:
    """Hutchinson's estimates of Tr(H) and Tr(H^2), for a Hessian at hand."""
    check_at_least(1, draws=draws)
    generator = generator or make_generator(0, "hutchinson", device=h.like.device)
    first, second = [], []
    for _ in range(draws):
        z = random_signs(h.like, generator)
        product = h @ z
        first.append(dots(z, product))
        second.append(dots(product, product))
    return Estimate.of(torch.stack(first)), Estimate.of(torch.stack(second))


def squared_curvature_by_differences(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    eta: float = 0.01,
    draws: int = 4,
    generator: torch.Generator | None = None,
) -> Estimate:
    """E ||H z||^2 = Tr(H^2), z ~ N(0, I), by centered differences of gradients: the paper's second-order term.

    ||(g(x + eta z) - g(x - eta z)) / (2 eta)||^2, averaged over z. The paper writes 1/(2 eta) outside the square,
    which is not an estimate of ||H z||^2 for any eta but 1/2; this is the consistent form.
    Cost: two gradient evaluations per draw.
    """
    check_at_least(1, draws=draws)
    generator = generator or make_generator(0, "differences", device=x.device)
    values = []
    for _ in range(draws):
        z = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        values.append(squared_difference(model, x, y, z, eta))
    return Estimate.of(torch.stack(values))


def squared_difference(model: nn.Module, x: Tensor, y: Tensor, z: Tensor, eta: float) -> Tensor:
    """||(g(x + eta z) - g(x - eta z)) / (2 eta)||^2 of each image (N,). Cost: two gradient evaluations."""
    if not eta > 0:
        raise UserError(f"eta, the step of the centered differences, must be above 0, not {eta}.")
    ahead = input_gradients(model, x + eta * z, y)[1]
    behind = input_gradients(model, x - eta * z, y)[1]
    return norms((ahead - behind) / (2 * eta)).square()


def random_signs(like: Tensor, generator: torch.Generator) -> Tensor:
    """Independent signs, +1 or -1 with equal probability, of the shape and type of `like`."""
    bits = torch.randint(0, 2, like.shape, generator=generator, device=like.device)
    return (2 * bits - 1).to(like.dtype)
