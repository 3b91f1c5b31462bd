"""The Fisher matrix of the input, G = sum_k p_k grad_x log p_k (grad_x log p_k)^T: equation (7) of the paper.

G needs no labels. It is the Hessian of D(p(x) ‖ p(x + d)) in d at d = 0 for every network, and the Hessian of the
cross-entropy where the network is piecewise linear (Proposition 1).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dign.augment.noise import add_diverse_gaussian_noise, add_gaussian_noise
from dign.core.checks import check_at_least
from dign.core.derivatives import Hessian, dots
from dign.core.divergences import kl, log_probabilities
from dign.core.freezing import freeze_temporarily
from dign.core.seeds import make_generator
from dign.landscape.curvature import Estimate, hessian_of
from dign.landscape.gradients import traced_log_probabilities


def fisher_trace(model: nn.Module, x: Tensor) -> Tensor:
    """Tr G = sum_k p_k ||grad_x log p_k||^2 of each image (N,), exactly: one forward and C backward passes."""
    with freeze_temporarily(model), torch.enable_grad():
        inputs, log_p = traced_log_probabilities(model, x)
        total = torch.zeros(len(x), device=log_p.device, dtype=log_p.dtype)
        for k in range(log_p.shape[1]):
            (gradients,) = torch.autograd.grad(log_p[:, k].sum(), inputs, retain_graph=True)
            total += log_p[:, k].detach().exp() * dots(gradients, gradients)
    return total


def sampled_fisher_trace(
    model: nn.Module, x: Tensor, *, draws: int = 4, generator: torch.Generator | None = None
) -> Estimate:
    """Tr G = E ||grad_x log p_k||^2 with classes k ~ p(x): one forward pass and one backward pass per draw.

    Unbiased. Cheaper than `fisher_trace` where classes are many, and noisy where the model is confident: most of
    the trace then sits on classes that are hardly ever drawn.
    """
    check_at_least(1, draws=draws)
    generator = generator or make_generator(0, "fisher", device=x.device)
    with freeze_temporarily(model), torch.enable_grad():
        inputs, log_p = traced_log_probabilities(model, x)
        classes = torch.multinomial(log_p.detach().exp(), draws, replacement=True, generator=generator)
        values = []
        for k in classes.unbind(1):
            (gradients,) = torch.autograd.grad(log_p.gather(1, k[:, None]).sum(), inputs, retain_graph=True)
            values.append(dots(gradients, gradients))
    return Estimate.of(torch.stack(values))


@contextmanager
def fisher(model: nn.Module, x: Tensor) -> Iterator[Hessian]:
    """G of each image, for products `g @ v`: the Hessian of D(p ‖ p(x)) with p held fixed at p(x).

    The curvature of the logits enters that Hessian with the weight p(x)_k - p_k = 0, which leaves G alone.
    """
    with hessian_of(model, x, lambda log_p: kl(log_p.detach(), log_p)) as g:
        yield g


def noise_divergence(
    model: nn.Module, x: Tensor, sigma: float, *, draws: int = 8, generator: torch.Generator | None = None
) -> Estimate:
    """E D(p(x) ‖ p(x + d)) of each image, d ~ N(0, sigma^2 I): about sigma^2/2 Tr G for small sigma, equation (8).

    Cost: one forward pass for x and one per draw. Where sigma is so small that the divergence nears the rounding of
    the logits, give a float64 model and batch.
    """
    check_at_least(0, sigma=sigma)
    return _divergence(model, x, lambda g: add_gaussian_noise(x, sigma, g), draws, generator)


def diverse_noise_divergence(
    model: nn.Module, x: Tensor, sigma_max: float, *, draws: int = 8, generator: torch.Generator | None = None
) -> Estimate:
    """The same with sigma ~ U(0, sigma_max) for each image and draw: about sigma_max^2/6 Tr G, equation (9).

    This is DiGN's regularizer. Cost: one forward pass for x and one per draw.
    """
    check_at_least(0, sigma_max=sigma_max)
    return _divergence(model, x, lambda g: add_diverse_gaussian_noise(x, sigma_max, g), draws, generator)


def _divergence(
    model: nn.Module,
    x: Tensor,
    noisy: Callable[[torch.Generator], Tensor],
    draws: int,
    generator: torch.Generator | None,
) -> Estimate:
    check_at_least(1, draws=draws)
    generator = generator or make_generator(0, "divergence", device=x.device)
    with freeze_temporarily(model), torch.no_grad():
        log_p = log_probabilities(model(x))
        values = [kl(log_p, log_probabilities(model(noisy(generator)))) for _ in range(draws)]
    return Estimate.of(torch.stack(values))
