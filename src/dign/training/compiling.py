"""The whole step of a method, views, passes and terms, as one compiled graph."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch._dynamo
from torch import Tensor, nn

from dign.core.compiled_draws import draw_from
from dign.core.errors import UserError
from dign.methods.base import Method
from dign.methods.reach import Reach
from dign.parallel.devices import DTYPES

TRACES_GRADIENTS = "trace_autograd_ops"
"""The setting by which `torch.compile` follows `torch.autograd.grad`."""


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

        hooks = self._hooks = Reach([edit for part in method.parts for edit in part.reach(inner)])

        def outcome(x: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
            made = method(inner, x, y, reach=hooks)
            return made.loss, made.terms

        if method.cost.second_order and not hasattr(torch._dynamo.config, TRACES_GRADIENTS):
            raise UserError(
                f"to compile a step of {method.title} takes PyTorch 2.11 or newer: train without `compile`."
            )
        how: dict[str, Any] = {"backend": backend} if backend else {}
        # One graph per shape: a run has few shapes, and a graph for all of them would be slower.
        self._compiled = torch.compile(outcome, fullgraph=True, dynamic=False, **how)
        self.method = method

    def __call__(self, x: Tensor, y: Tensor, generator: torch.Generator | None) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of a batch, and its terms."""
        with draw_from(generator), self._tracing(), self._hooks.attach():
            loss, terms = self._compiled(x, y)
        return loss, terms

    def _tracing(self) -> AbstractContextManager[Any]:
        """Let the compiler follow gradients that the step takes by itself, where it takes them."""
        if not self.method.cost.second_order:
            return nullcontext()
        tracing: AbstractContextManager[Any] = torch._dynamo.config.patch(TRACES_GRADIENTS, True)
        return tracing


class MixedPrecision(nn.Module):
    """A model that computes in a smaller type and gives float32 logits, as Fabric has it."""

    def __init__(self, model: nn.Module, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.model, self._kind, self._dtype = model, device.type, dtype

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast(self._kind, dtype=self._dtype):
            logits: Tensor = self.model(x.to(self._dtype))
        return logits.float()
