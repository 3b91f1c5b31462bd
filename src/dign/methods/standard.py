"""Standard training: empirical risk minimization, equation (1)."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from dign.methods.base import Cost, Method


@dataclass(frozen=True, kw_only=True)
class Standard(Method):
    """Cross-entropy on the clean batch: L(f(x), y).

    >>> import torch
    >>> model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 10))
    >>> Standard()(model, torch.rand(4, 3, 8, 8), torch.arange(4)).loss.backward()
    """

    key = "standard"
    title = "Standard"
    cost = Cost(forward=1, backward=1)

    def terms(self, clean: Tensor | None, views: Sequence[Tensor], y: Tensor) -> dict[str, Tensor]:
        assert clean is not None  # sees_clean
        return {"cross_entropy": self.cross_entropy(clean, y)}
