"""What the measurements say about the theory: plain numbers for a file and a figure."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from dign.core.seeds import make_generator
from dign.landscape.bounds import (
    log_norm_tail_bound,
    log_norm_tail_chernoff,
    log_stability_bound,
    log_stability_chernoff,
    norm_tail_informative_from,
    stability_informative_from,
)
from dign.landscape.theory import TheoryPlan, TheoryValues

ROUNDING = 64 * torch.finfo(torch.float64).eps
"""Differences of losses below this are rounding, not landscape."""


def theory_summary(values: TheoryValues, plan: TheoryPlan, dimension: int) -> dict[str, Any]:
    """All checks, by the names that the paper gives them."""
    return {
        "images": len(values.loss),
        "dimension": dimension,
        "equation_8": expansion(values, plan, values.divergence, torch.ones_like(values.level), 2),
        "equation_9": expansion(values, plan, values.diverse_divergence, values.level, 6),
        "proposition_1": proposition_1(values),
        "consequences": consequences(values),
        "theorem_1": theorem_1(values, plan),
        "lemma_1": lemma_1(dimension, plan),
        "theorem_2": theorem_2(values, plan, dimension),
    }


def expansion(
    values: TheoryValues, plan: TheoryPlan, divergence: Tensor, level: Tensor, factor: int
) -> dict[str, list[float | None]]:
    """E D against sigma^2/factor Tr G at each sigma: the ratio of the means over images, and of single images.

    The noise of the draws is taken out by a control variate: (sigma level)^2/2 z^T G z has the known mean
    sigma^2/factor Tr G and follows the divergence closely where sigma is small. Images on which the model is so sure
    that this mean is lost in rounding do not count.
    """
    ratios: list[dict[str, float | None]] = []
    pooled: list[float | None] = []
    errors: list[float | None] = []
    counts: list[float | None] = []
    for column, sigma in enumerate(plan.sigmas):
        expected = sigma**2 / factor * values.fisher_trace
        counted = expected > 10 * ROUNDING
        control = (sigma * level) ** 2 / 2 * values.quadratic - expected[:, None]
        mean = _controlled_mean(divergence[:, column], control)[counted]
        expected = expected[counted]
        counts.append(len(mean))
        pooled.append(_ratio(mean.sum(), expected.sum()))
        ratios.append(_quantiles(mean / expected))
        errors.append(_ratio_error(mean, expected))
    return {
        "sigma": list(plan.sigmas),
        "ratio": pooled,
        "standard_error": errors,
        "images": counts,
        **{name: [row[name] for row in ratios] for name in ("q10", "median", "q90")},
    }


def _ratio(total: Tensor, expected: Tensor) -> float | None:
    return float(total / expected) if expected > 0 else None


def _ratio_error(mean: Tensor, expected: Tensor) -> float | None:
    """The standard error over images of the ratio of two means, to first order."""
    if len(mean) < 2:
        return None
    residual = mean - mean.sum() / expected.sum() * expected
    return float(residual.std() / expected.mean()) / math.sqrt(len(mean))


def _controlled_mean(draws: Tensor, control: Tensor) -> Tensor:
    """The mean over draws (N,K) less its regression, per image, on a control of mean zero."""
    centered = control - control.mean(1, keepdim=True)
    slope = ((draws * centered).sum(1) / centered.square().sum(1).clamp(min=1e-300)).clamp(0, 1)
    return draws.mean(1) - slope * control.mean(1)


def proposition_1(values: TheoryValues) -> dict[str, float | None]:
    """||H - G||_F / ||G||_F: rounding for a piecewise linear network."""
    seen = values.fisher_square > 0
    relative = (values.departure[seen] / values.fisher_square[seen]).sqrt()
    pooled = float((values.departure.sum() / values.fisher_square.sum().clamp(min=1e-300)).sqrt())
    return {"pooled": pooled, **_quantiles(relative)}


def consequences(values: TheoryValues) -> dict[str, float]:
    """Percent of images on which Tr G bounds what the paper says it bounds: lambda_max, and (exactly) p_y ||g||^2."""
    p_y = (-values.loss).exp()
    slightly_more = values.fisher_trace * (1 + 1e-9)
    return {
        "largest_eigenvalue_below_trace": _percent(values.largest <= slightly_more),
        "gradient_below_trace": _percent(p_y * values.gradient_norm**2 <= slightly_more),
        "smallest_eigenvalue_negative": _percent(values.smallest < -1e-6 * values.spectral_norm - ROUNDING),
        "largest_relative_residual": float((values.residual / values.spectral_norm.clamp(min=1e-300)).max()),
    }


def theorem_1(values: TheoryValues, plan: TheoryPlan) -> dict[str, Any]:
    """Percent of images on which the bound without its o() term holds, and its slack: bound / actual change."""
    bound = values.bound(torch.tensor(plan.radii, dtype=torch.float64))
    result: dict[str, Any] = {"radius": list(plan.radii)}
    for name, change in (("random", values.random_change), ("steepest", values.steepest_change)):
        held = change <= bound * (1 + 1e-12) + ROUNDING
        result[f"{name}_holds"] = [_percent(column) for column in held.unbind(1)]
        slack = [
            _quantile((b / c)[c > 1e3 * ROUNDING], 0.5) for b, c in zip(bound.unbind(1), change.unbind(1), strict=True)
        ]
        result[f"{name}_slack"] = slack
    return result


def lemma_1(dimension: int, plan: TheoryPlan, draws: int = 4096) -> dict[str, Any]:
    """log10 of the bound, of Chernoff's and of the exact tail of ||d||, and the norms of real draws."""
    sigma, informative = plan.tail_sigma, norm_tail_informative_from(dimension, plan.tail_sigma)
    typical = sigma * math.sqrt(dimension)
    u = torch.logspace(math.log10(typical / 4), math.log10(3 * informative), 160, dtype=torch.float64)
    half = torch.tensor(dimension / 2, dtype=torch.float64)
    exact = torch.special.gammaincc(half, u**2 / (2 * sigma**2))
    norms = _sampled_norms(dimension, sigma, draws, plan.seed)
    return {
        "sigma": sigma,
        "norm": u.tolist(),
        "bound": _log10(log_norm_tail_bound(u, dimension, sigma)),
        "chernoff": _log10(log_norm_tail_chernoff(u, dimension, sigma)),
        "exact": _log10(exact.log()),
        "empirical": _log10((norms > u[:, None]).double().mean(1).log()),
        "typical_norm": typical,
        "informative_from": informative,
    }


def _sampled_norms(dimension: int, sigma: float, draws: int, seed: int, at_once: int = 256) -> Tensor:
    generator = make_generator(seed, "theory/norms")
    blocks = [torch.randn(at_once, dimension, generator=generator).norm(dim=1) for _ in range(draws // at_once)]
    return sigma * torch.cat(blocks).double()


def theorem_2(values: TheoryValues, plan: TheoryPlan, dimension: int) -> dict[str, Any]:
    """log10 of the bound beside the tail of real draws: of the median image, and averaged over images.

    A bound on the tail over all images and draws is the mean over images of min(1, bound).
    """
    arguments = (dimension, plan.tail_sigma, values.gradient_norm[:, None], values.spectral_norm[:, None])
    informative = stability_informative_from(dimension, plan.tail_sigma, values.gradient_norm, values.spectral_norm)
    low, high = 1e-3, max(10 * float(informative.max()), 1.0)
    t = torch.logspace(math.log10(low), math.log10(high), 160, dtype=torch.float64)
    return {
        "sigma": plan.tail_sigma,
        "t": t.tolist(),
        "median_bound": _log10(log_stability_bound(t, *arguments).quantile(0.5, dim=0, interpolation="lower")),
        "bound": _mean_over_images(log_stability_bound(t, *arguments)),
        "chernoff": _mean_over_images(log_stability_chernoff(t, *arguments)),
        "empirical": _log10((values.tail[:, :, None] > t).double().mean((0, 1)).log()),
        "draws": values.tail.numel(),
        "informative_from": _quantiles(informative),
        "largest_change": float(values.tail.max()),
        "changes_where_informative": int((values.tail > informative[:, None]).sum()),
    }


def _mean_over_images(logs: Tensor) -> list[float | None]:
    """log10 of the mean over images (first axis) of min(1, bound)."""
    return _log10(torch.logsumexp(logs.clamp(max=0), 0) - math.log(len(logs)))


def _log10(logs: Tensor) -> list[float | None]:
    """Natural logarithms as log10; None for the logarithm of zero, which JSON cannot hold."""
    return [value if math.isfinite(value) else None for value in (logs / math.log(10)).tolist()]


def _quantiles(values: Tensor) -> dict[str, float | None]:
    names = {"q10": 0.1, "median": 0.5, "q90": 0.9}
    return {name: _quantile(values, q) for name, q in names.items()}


def _quantile(values: Tensor, q: float) -> float | None:
    """The value of one of the images; None where there is none."""
    return float(values.quantile(q, interpolation="lower")) if len(values) else None


def _percent(holds: Tensor) -> float:
    return 100 * float(holds.double().mean())
