"""Divergences between class distributions, from log-probabilities, one value per example.

All work in float32 or better and stay finite for extreme logits: a log-probability is never recomputed from a
probability that may have rounded to zero. A class of probability zero, such as one masked with a logit of -inf,
contributes nothing: 0 log 0 = 0.
"""

import math

import torch
from torch import Tensor


def at_least_float32(logits: Tensor) -> Tensor:
    """Logits in float32 where their type is smaller, as under autocast; float32 and float64 stay as they are.

    >>> at_least_float32(torch.zeros(2, 3, dtype=torch.bfloat16)).dtype
    torch.float32
    >>> at_least_float32(torch.zeros(2, 3, dtype=torch.float64)).dtype
    torch.float64
    """
    return logits.float() if logits.dtype.itemsize < 4 else logits


def log_probabilities(logits: Tensor) -> Tensor:
    """The log softmax of logits (..., C) over the last axis, in float32 at least.

    >>> log_probabilities(torch.tensor([[0.0, 0.0]])).exp()
    tensor([[0.5000, 0.5000]])
    """
    return torch.log_softmax(at_least_float32(logits), dim=-1)


def kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """The Kullback-Leibler divergence D(p ‖ q) = sum_c p_c (log p_c - log q_c).

    Gradients flow through both arguments, as in equation (6) of the paper.

    Args:
        log_p: Log-probabilities (..., C).
        log_q: Log-probabilities (..., C). Where q is zero and p is not, the divergence is infinite.

    Returns:
        One value per example, (...).

    >>> p = torch.tensor([[0.5, 0.5]]).log()
    >>> q = torch.tensor([[0.25, 0.75]]).log()
    >>> round(kl(p, q).item(), 4)  # 0.5 ln 2 + 0.5 ln (2/3)
    0.1438
    """
    p = log_p.exp()
    log_ratio = (log_p - log_q).masked_fill(p == 0, 0)  # neither 0 * inf nor, in the gradient, inf - inf
    return (p * log_ratio).sum(-1)


def jensen_shannon(*log_ps: Tensor) -> Tensor:
    """The Jensen-Shannon divergence JS(p_1; ...; p_m) = mean_i D(p_i ‖ mean_j p_j), at most ln m.

    Args:
        log_ps: Log-probabilities (..., C) of each distribution.

    Returns:
        One value per example, (...).

    >>> certain = torch.tensor([[1.0, 0.0]]).log(), torch.tensor([[0.0, 1.0]]).log()
    >>> round(jensen_shannon(*certain).item(), 4)  # ln 2
    0.6931
    """
    stacked = torch.stack(log_ps)
    lowest = torch.finfo(stacked.dtype).min  # the gradient of logsumexp is NaN where all its arguments are -inf
    log_mixture = torch.logsumexp(stacked.clamp(min=lowest), dim=0) - math.log(len(log_ps))
    return kl(stacked, log_mixture).mean(0)
