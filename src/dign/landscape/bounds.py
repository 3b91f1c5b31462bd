"""The paper's bounds as functions: Theorem 1, Lemma 1 and Theorem 2.

Lemma 1 and Theorem 2 carry the factor 2^d, which overflows at the dimension of an image: they are given as natural
logarithms. A bound on a probability says something only where its logarithm is below zero.
"""

import math

import torch
from torch import Tensor


def loss_difference_bound(radius: float | Tensor, gradient_norm: Tensor, curvature: Tensor) -> Tensor:
    """Theorem 1 without its o() term, equation (11): `|L(x+d) - L(x)| <= r ||g|| + r^2/2 lambda_max(H)`, `r = ||d||`.

    `curvature` is lambda_max(H) where H is positive semidefinite, as the paper's proof assumes, else the spectral norm.
    """
    return radius * gradient_norm + 0.5 * radius**2 * curvature


def log_norm_tail_bound(u: Tensor, dimension: int, sigma: float) -> Tensor:
    """Lemma 1: ln of the bound on P(||d||_2 > u), d ~ N(0, sigma^2 I): d ln 2 - u^2 / (2 d sigma^2), equation (13).

    >>> log_norm_tail_bound(torch.tensor(0.0), dimension=1, sigma=1.0).exp()  # 2^1
    tensor(2.)
    """
    return dimension * math.log(2) - u**2 / (2 * dimension * sigma**2)


def norm_tail_informative_from(dimension: int, sigma: float) -> float:
    """The norm above which Lemma 1 is below 1: sigma d sqrt(2 ln 2), about 1.18 sqrt(d) times the typical norm."""
    return sigma * dimension * math.sqrt(2 * math.log(2))


def log_norm_tail_chernoff(u: Tensor, dimension: int, sigma: float) -> Tensor:
    """ln of Chernoff's bound on the same probability, from the chi-square law of ||d||^2 (not in the paper).

    With r = u^2 / (d sigma^2): -d/2 (r - 1 - ln r) for r > 1, else 0. It is never vacuous beyond the typical norm.
    """
    ratio = (u**2 / (dimension * sigma**2)).clamp(min=1)
    return -0.5 * dimension * (ratio - 1 - ratio.log())


def log_stability_bound(t: Tensor, dimension: int, sigma: float, gradient_norm: Tensor, curvature: Tensor) -> Tensor:
    """Theorem 2: ln of the bound on `P(|ln p(x)_y / p(x+d)_y| > t)`, d ~ N(0, sigma^2 I), for each image.

    2^d exp(-t^2 / (8 d sigma^2 ||g||^2)) + 2^d exp(-t / (2 d sigma^2 lambda_max)): Lemma 1 at each of the two norms
    of `_critical_norms`. Shapes broadcast.
    """
    first, second = _critical_norms(t, gradient_norm, curvature)
    return torch.logaddexp(log_norm_tail_bound(first, dimension, sigma), log_norm_tail_bound(second, dimension, sigma))


def log_stability_chernoff(t: Tensor, dimension: int, sigma: float, gradient_norm: Tensor, curvature: Tensor) -> Tensor:
    """The argument of Theorem 2 with Chernoff's bound in the place of Lemma 1 and no union bound (not in the paper).

    r ||g|| + r^2/2 lambda > t happens exactly when the norm r exceeds the root of that quadratic.
    """
    # The root in the form that stays exact where lambda is (nearly) zero.
    root = 2 * t / (gradient_norm + (gradient_norm**2 + 2 * curvature * t).sqrt()).clamp(min=_tiny(gradient_norm))
    return log_norm_tail_chernoff(root, dimension, sigma)


def stability_informative_from(dimension: int, sigma: float, gradient_norm: Tensor, curvature: Tensor) -> Tensor:
    """The t above which Theorem 2 is below 1, for each image, by bisection of the (monotone) bound.

    Where the larger term alone is 1 the sum is above 1, and where both terms are at most 1/2 it is at most 1.
    """
    scale = 2 * dimension * sigma**2
    gradient, curved = gradient_norm.double(), curvature.double()

    def alone(log_level: float) -> Tensor:
        """The larger t at which one term equals exp(-log_level)."""
        excess = dimension * math.log(2) + log_level
        return torch.maximum(math.sqrt(4 * scale * excess) * gradient, scale * excess * curved)

    low, high = alone(0.0), alone(math.log(2))
    for _ in range(60):
        middle = (low + high) / 2
        vacuous = log_stability_bound(middle, dimension, sigma, gradient, curved) >= 0
        low, high = torch.where(vacuous, middle, low), torch.where(vacuous, high, middle)
    return high.to(gradient_norm.dtype)


def _critical_norms(t: Tensor, gradient_norm: Tensor, curvature: Tensor) -> tuple[Tensor, Tensor]:
    """The norms of d at which r ||g|| = t/2 and r^2/2 lambda = t/2."""
    tiny = _tiny(gradient_norm)
    return t / (2 * gradient_norm).clamp(min=tiny), (t / curvature.clamp(min=tiny)).sqrt()


def _tiny(like: Tensor) -> float:
    """Small enough to stand for zero in a denominator, and large enough for its inverse squared to be a number."""
    return float(torch.finfo(like.dtype).tiny ** 0.25)
