"""Divergences between class distributions, from log-probabilities, one value per example.

All work in float32 or better and stay finite for extreme logits: a log-probability is never re-computed from
a probability that may have rounded to zero.
"""

import math

import torch
from torch import Tensor


def log_probabilities(logits: Tensor) -> Tensor:
    """log softmax over the last axis, in float32 at least (also under autocast)."""
    return torch.log_softmax(logits.float() if logits.dtype.itemsize < 4 else logits, dim=-1)


def kl(log_p: Tensor, log_q: Tensor) -> Tensor:
    """D(p ‖ q) = sum_c p_c (log p_c - log q_c), shape (..., C) to (...).

    Gradients flow through both arguments, as in equation (6) of the paper.

    >>> p = torch.tensor([[0.5, 0.5]]).log()
    >>> q = torch.tensor([[0.25, 0.75]]).log()
    >>> round(kl(p, q).item(), 4)  # 0.5 ln 2 + 0.5 ln (2/3)
    0.1438
    """
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def jensen_shannon(*log_ps: Tensor) -> Tensor:
    """JS(p_1; ...; p_m) = mean_i D(p_i ‖ mean_j p_j), shape (..., C) to (...); at most ln m."""
    stacked = torch.stack(log_ps)
    log_mixture = torch.logsumexp(stacked, dim=0) - math.log(len(log_ps))
    return kl(stacked, log_mixture).mean(0)
