"""The whole step of a method, views, passes and terms, as one compiled graph."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from dign.core.compiled_draws import draw_from
from dign.methods.base import Method
from dign.parallel.devices import DTYPES


class CompiledStep:
    """A method applied to a model, compiled without a break: `step(x, y, generator)`.

    Args:
        method: The method.
        model: The model itself, in no wrapper.
        device: Where it is.
        precision: As `resolve_precision` gives it.
        backend: Of `torch.compile`; None is its own default.
    """

    def __init__(
        self, method: Method, model: nn.Module, device: torch.device, precision: str, *, backend: str | None = None
    ) -> None:
        inner = MixedPrecision(model, device, DTYPES[precision]) if precision in DTYPES else model

        def outcome(x: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            made = method(inner, x, y)
            return made.loss, made.terms

        how: dict[str, Any] = {"backend": backend} if backend else {}
        # One graph per shape: a run has few shapes, and a graph for all of them would be slower.
        self._compiled = torch.compile(outcome, fullgraph=True, dynamic=False, **how)
        self.method = method

    def __call__(self, x: Tensor, y: Tensor, generator: torch.Generator | None) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, and its terms."""
        with draw_from(generator):
            loss, terms = self._compiled(x, y)
        return loss, terms


class MixedPrecision(nn.Module):
    """A model that computes in a smaller type and gives float32 logits, as Fabric has it."""

    def __init__(self, model: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self._kind, self._dtype = model, device.type, dtype

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(self._kind, dtype=self._dtype):
            logits: Tensor = self.model(x.to(self._dtype))
        return logits.float()
