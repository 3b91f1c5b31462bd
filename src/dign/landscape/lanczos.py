"""The extreme eigenvalues of each image's Hessian, by Lanczos iteration on a whole batch at once."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least
from dign.core.derivatives import Hessian, dots, norms
from dign.core.image_rng import normal_like
from dign.core.seeds import make_generator
from dign.landscape.curvature import hessian

CHECK_EVERY = 4
"""Iterations between two looks at the residuals: a look waits for the device."""


@dataclass(frozen=True)
class Extremes:
    """The largest and smallest eigenvalue of each image's H (N,), with the residuals ||H v - lambda v|| (N,).

    An eigenvalue of H lies within the residual of the value that is given. `iterations` is the number of
    Hessian-vector products that were made.
    """

    largest: Tensor
    largest_residual: Tensor
    smallest: Tensor
    smallest_residual: Tensor
    iterations: int

    @property
    def spectral_norm(self) -> Tensor:
        """`max |lambda|`: equal to `largest` where H is positive semidefinite, as in the paper."""
        return torch.maximum(self.largest, -self.smallest)


def largest_eigenvalue(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    iterations: int = 32,
    tolerance: float = 1e-3,
    generator: torch.Generator | None = None,
) -> Extremes:
    """lambda_max(H) of each image (`.largest`), with its residual.

    Stops when both residuals of every image are below `tolerance` times its spectral norm, or after `iterations`.
    Cost: one gradient evaluation and one Hessian-vector product per iteration.
    """
    with hessian(model, x, y) as h:
        return extreme_eigenvalues(h, iterations=iterations, tolerance=tolerance, generator=generator)


def extreme_eigenvalues(
    h: Hessian, *, iterations: int = 32, tolerance: float = 1e-3, generator: torch.Generator | None = None
) -> Extremes:
    """Both ends of the spectrum of each image's H, by Lanczos with full reorthogonalization.

    The Krylov basis starts at random; H is a tridiagonal matrix T in it, with diagonal `alphas` and off-diagonal
    `betas`. For a network of ReLUs H has rank below the number of classes, and the iteration is exact after that
    many steps: an image whose basis is complete continues with zero vectors.
    """
    check_at_least(1, iterations=iterations)
    generator = generator or make_generator(0, "lanczos", device=h.like.device)
    steps = min(iterations, h.like[0].numel())
    start = normal_like(h.like, generator).flatten(1)
    basis = start.new_zeros(len(start), steps + 1, start.shape[1])
    basis[:, 0] = start / norms(start)[:, None]
    alphas, betas = [], []
    for step in range(1, steps + 1):
        newest = basis[:, step - 1]
        product = (h @ newest.view_as(h.like)).flatten(1)
        alphas.append(dots(newest, product))
        rest = _orthogonal(product, basis[:, :step])
        beta = norms(rest)
        rounding = 1e2 * torch.finfo(beta.dtype).eps * torch.maximum(norms(product), alphas[0].abs())
        complete = beta <= rounding
        betas.append(torch.where(complete, 0, beta))
        basis[:, step] = torch.where(complete[:, None], 0, rest / beta[:, None])
        if step % CHECK_EVERY == 0 or step == steps:
            found = _ritz(torch.stack(alphas, 1), torch.stack(betas, 1))
            if _converged(found, tolerance):
                break
    return found


def _orthogonal(v: Tensor, basis: Tensor) -> Tensor:
    """The part of v (N,d) orthogonal to the basis (N,k,d); taken twice, which is enough in floating point."""
    for _ in range(2):
        v = v - (basis.mT @ (basis @ v[:, :, None]))[:, :, 0]
    return v


def _ritz(alphas: Tensor, betas: Tensor) -> Extremes:
    """The extreme eigenvalues of T (N,k,k) and their residuals |beta_k| * |last component of the eigenvector|."""
    steps = alphas.shape[1]
    # After a basis is complete T continues with zeros; the first Rayleigh quotient in their place lies inside the
    # spectrum, so it never hides an extreme eigenvalue (a zero would, where all of them are negative).
    ended = torch.cat([torch.zeros_like(betas[:, :1], dtype=torch.bool), (betas == 0).cumsum(1)[:, :-1] > 0], 1)
    diagonal = torch.where(ended, alphas[:, :1], alphas).double()
    tridiagonal = torch.diag_embed(diagonal)
    if steps > 1:
        off = torch.where(ended[:, 1:], 0, betas[:, :-1]).double()
        tridiagonal = tridiagonal + torch.diag_embed(off, 1) + torch.diag_embed(off, -1)
    values, vectors = torch.linalg.eigh(tridiagonal)
    last = torch.where(ended[:, -1], 0, betas[:, -1]).double()
    residuals = last[:, None] * vectors[:, -1].abs()
    ends = (values[:, -1], residuals[:, -1], values[:, 0], residuals[:, 0])
    largest, largest_residual, smallest, smallest_residual = (end.to(alphas.dtype) for end in ends)
    return Extremes(largest, largest_residual, smallest, smallest_residual, iterations=steps)


def _converged(found: Extremes, tolerance: float) -> bool:
    residual = torch.maximum(found.largest_residual, found.smallest_residual)
    return bool((residual <= tolerance * found.spectral_norm).all())
