"""Standard training: empirical risk minimization, equation (1)."""

from dataclasses import dataclass

from dign.methods.base import Method


@dataclass(frozen=True, kw_only=True)
class Standard(Method):
    """Cross-entropy on the clean batch: L(f(x), y).

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> Standard()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "standard"
    title = "Standard"
