"""Measurements that put the paper's theory (section III) to the test on a model: equations (8) and (9), Proposition 1,
Theorem 1, Lemma 1 and Theorem 2.

All of it runs on a float64 copy of the model: the divergences under the smallest noise lie far below the rounding of
float32 logits.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.derivatives import dots, norms, per_image
from dign.core.divergences import kl, log_probabilities
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import image_noise, make_placed_generator
from dign.core.pixels import to_float
from dign.landscape.batch_size import Progress, find_batch_size, run_in_batches
from dign.landscape.bounds import loss_difference_bound
from dign.landscape.curvature import hessian
from dign.landscape.fisher import fisher, fisher_trace
from dign.landscape.gradients import check_batch, image_losses, input_gradients
from dign.landscape.lanczos import extreme_eigenvalues


@dataclass(frozen=True, kw_only=True)
class TheoryPlan:
    """Noise levels for (8) and (9), radii for Theorem 1, the noise of Theorem 2, draws per image, a seed."""

    sigmas: tuple[float, ...] = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3)
    radii: tuple[float, ...] = (1e-4, 1e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    tail_sigma: float = 0.1
    draws: int = 8
    tail_draws: int = 32
    iterations: int = 32
    tolerance: float = 1e-4
    dequantize: bool = True
    """Move every pixel at random inside its 8-bit step. The theory holds almost everywhere, and images with a flat
    background are an exception: their pixels tie exactly in a max-pool, which puts the image onto a kink."""
    seed: int = 0


@dataclass(frozen=True)
class TheoryValues:
    """Per image (N,), with further axes for noise levels (S), radii (R) and draws (K)."""

    loss: Tensor
    gradient_norm: Tensor
    fisher_trace: Tensor
    quadratic: Tensor
    """z^T G z of each draw z (N,K): its mean over z is Tr G."""
    level: Tensor
    """sigma/sigma_max ~ U(0,1) of each draw (N,K)."""
    divergence: Tensor
    """D(p(x) ‖ p(x + sigma z)) at each sigma and draw (N,S,K)."""
    diverse_divergence: Tensor
    """The same with sigma times `level` (N,S,K)."""
    departure: Tensor
    """||(H - G) z||^2, averaged over z: ||H - G||_F^2."""
    fisher_square: Tensor
    """||G z||^2, averaged over the same z: ||G||_F^2."""
    largest: Tensor
    smallest: Tensor
    residual: Tensor
    random_change: Tensor
    """|L(x+d) - L(x)| for d of each radius in a random direction (N,R)."""
    steepest_change: Tensor
    """The same for d along the gradient (N,R)."""
    tail: Tensor
    """|ln p(x)_y / p(x+d)_y| for draws d ~ N(0, tail_sigma^2 I) (N,K)."""

    @property
    def spectral_norm(self) -> Tensor:
        return torch.maximum(self.largest, -self.smallest)

    def bound(self, radii: Tensor) -> Tensor:
        """Theorem 1 at each radius (N,R)."""
        return loss_difference_bound(radii, self.gradient_norm[:, None], self.spectral_norm[:, None])


def measure_theory(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    plan: TheoryPlan,
    *,
    device: torch.device | str = "cpu",
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> TheoryValues:
    """Everything that the checks need, on uint8 images (N,3,H,W), batch by batch."""
    exact = _to_double(model)

    def at(batch: slice) -> Tensor:
        return _prepare_images(images[batch].to(device), plan, first=batch.start)

    with freeze_temporarily(exact):
        batch_size = batch_size or find_batch_size(exact, at(slice(0, 1)), second_order=True)

        def work(batch: slice) -> dict[str, Tensor]:
            return theory_batch(exact, at(batch), labels[batch].to(device), plan, first=batch.start)

        return TheoryValues(**run_in_batches(len(images), batch_size, work, progress))


def _to_double(model: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(model).double()
    except TypeError as error:
        raise UserError("The checks of the theory need float64, which this device lacks: use `device=cpu`.") from error


def _prepare_images(images: Tensor, plan: TheoryPlan, *, first: int) -> Tensor:
    """uint8 images as float64 in [0,1], moved by U(-1/2, 1/2) of an 8-bit step if the plan says so."""
    x = to_float(images, torch.float64)
    if plan.dequantize:
        noise = image_noise(x, first=first, seed=plan.seed, purpose="theory/dequantize", draw=0)
        x = x + (torch.special.ndtr(noise) - 0.5) / 255
    return x


def theory_batch(model: nn.Module, x: Tensor, y: Tensor, plan: TheoryPlan, *, first: int = 0) -> dict[str, Tensor]:
    """The fields of `TheoryValues` for one batch of float64 images, the first of which is number `first` of all."""
    check_batch(x, y)
    loss, gradients, log_p = input_gradients(model, x, y)

    def noise(purpose: str, draws: int, like: Tensor = x) -> list[Tensor]:
        purpose = f"theory/{purpose}"
        return [image_noise(like, first=first, seed=plan.seed, purpose=purpose, draw=draw) for draw in range(draws)]

    directions = noise("divergence", plan.draws)
    level = torch.special.ndtr(torch.cat(noise("level", plan.draws, x.flatten(1)[:, :1]), 1))
    (random,) = noise("radius", 1)
    return {
        "loss": loss,
        "gradient_norm": norms(gradients),
        "fisher_trace": fisher_trace(model, x),
        "level": level,
        "divergence": _divergences(model, x, log_p, directions, plan.sigmas, torch.ones_like(level)),
        "diverse_divergence": _divergences(model, x, log_p, directions, plan.sigmas, level),
        **_hessian_against_fisher(model, x, y, directions),
        **_spectrum(model, x, y, plan, first),
        "random_change": _changes(model, x, y, loss, random, plan.radii),
        "steepest_change": _changes(model, x, y, loss, gradients, plan.radii),
        "tail": _tail(model, x, y, loss, plan.tail_sigma, noise("tail", plan.tail_draws)),
    }


def _divergences(
    model: nn.Module, x: Tensor, log_p: Tensor, directions: list[Tensor], sigmas: tuple[float, ...], level: Tensor
) -> Tensor:
    """D(p(x) ‖ p(x + sigma level z)) (N,S,K). Cost: S K forward passes."""
    rows = []
    with freeze_temporarily(model), torch.no_grad():
        for sigma in sigmas:
            noisy = (x + per_image(sigma * level[:, k], x) * z for k, z in enumerate(directions))
            rows.append(torch.stack([kl(log_p, log_probabilities(model(images))) for images in noisy], 1))
    return torch.stack(rows, 1)


def _hessian_against_fisher(model: nn.Module, x: Tensor, y: Tensor, directions: list[Tensor]) -> dict[str, Tensor]:
    """z^T G z, and the squared Frobenius norms of H - G and of G by Hutchinson's estimator."""
    with fisher(model, x) as g:
        by_fisher = [g @ z for z in directions]
    with hessian(model, x, y) as h:
        gaps = [h @ z - product for z, product in zip(directions, by_fisher, strict=True)]
    return {
        "quadratic": torch.stack([dots(z, product) for z, product in zip(directions, by_fisher, strict=True)], 1),
        "departure": torch.stack([dots(gap, gap) for gap in gaps]).mean(0),
        "fisher_square": torch.stack([dots(product, product) for product in by_fisher]).mean(0),
    }


def _spectrum(model: nn.Module, x: Tensor, y: Tensor, plan: TheoryPlan, first: int) -> dict[str, Tensor]:
    start = make_placed_generator(plan.seed, "theory/lanczos", first, x.device)
    with hessian(model, x, y) as h:
        found = extreme_eigenvalues(h, iterations=plan.iterations, tolerance=plan.tolerance, generator=start)
    residual = torch.maximum(found.largest_residual, found.smallest_residual)
    return {"largest": found.largest, "smallest": found.smallest, "residual": residual}


def _changes(
    model: nn.Module, x: Tensor, y: Tensor, loss: Tensor, direction: Tensor, radii: tuple[float, ...]
) -> Tensor:
    """|L(x + r v/||v||) - L(x)| for each radius r (N,R); no change where v is zero."""
    unit = direction / per_image(norms(direction).clamp(min=torch.finfo(x.dtype).tiny), x)
    return torch.stack([(image_losses(model, x + radius * unit, y) - loss).abs() for radius in radii], 1)


def _tail(model: nn.Module, x: Tensor, y: Tensor, loss: Tensor, sigma: float, directions: list[Tensor]) -> Tensor:
    return torch.stack([(image_losses(model, x + sigma * z, y) - loss).abs() for z in directions], 1)
