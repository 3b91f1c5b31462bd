"""Optimizers by name: how a step turns gradients into new weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

REST_RATE = 0.05
"""Learning rate of parameters that are not kernels (biases, the head), as a fraction of the kernels' rate."""


def make_optimizer(
    name: str,
    parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
    *,
    lr: float,
    momentum: float,
    weight_decay: float,
) -> Optimizer:
    """The optimizer of a run: "sgd" with Nesterov momentum, or "orthogonal" (see `Orthogonal`)."""
    if name == "orthogonal":
        return Orthogonal(parameters, lr=lr, momentum=momentum, weight_decay=weight_decay)
    return torch.optim.SGD(parameters, lr=lr, momentum=momentum, nesterov=momentum > 0, weight_decay=weight_decay)


class Orthogonal(Optimizer):
    """Momentum whose update of a convolution's kernel is made orthogonal first (Jordan et al., 2024: "Muon").

    A kernel (out, in, h, w) is a matrix (out, in*h*w); its Nesterov momentum M = U S V^T is replaced by about U V^T,
    so that every direction moves equally far. Steps are relative: the kernel turns by about `lr` radians and keeps its
    norm, which a normalization behind it takes out anyway. Everything else (biases, linear layers) is updated by Adam
    at `REST_RATE * lr`. Few large steps are then enough, where SGD needs many small ones.

    `weight_decay` applies to the linear layers alone: kernels keep their norm, biases are left free.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        *,
        lr: float,
        momentum: float = 0.6,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        assert closure is None, "one gradient per step"
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if parameter.ndim == 4:
                    self._rotate(parameter, self.state[parameter], group)
                else:
                    self._adam(parameter, self.state[parameter], group)

    def _rotate(self, kernel: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
        if not state:
            state["momentum"] = torch.zeros_like(kernel)
        gradient, momentum = kernel.grad, group["momentum"]
        assert gradient is not None
        state["momentum"].mul_(momentum).add_(gradient)
        direction = orthogonalize(gradient.add(state["momentum"], alpha=momentum).flatten(1)).view_as(kernel)
        norm, least = kernel.norm(), torch.finfo(kernel.dtype).tiny  # a gradient of zeros moves nothing
        kernel.sub_(direction * (group["lr"] * norm / direction.norm().clamp(min=least)))
        kernel.mul_(norm / kernel.norm().clamp(min=least))

    def _adam(self, parameter: Tensor, state: dict[str, Tensor], group: dict[str, Any]) -> None:
        gradient, first_decay, second_decay = parameter.grad, 0.9, 0.95
        assert gradient is not None
        if not state:
            state["first"], state["second"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state["steps"] = torch.zeros((), device=parameter.device)
        state["steps"] += 1
        state["first"].lerp_(gradient, 1 - first_decay)
        state["second"].lerp_(gradient.square(), 1 - second_decay)
        first = state["first"] / (1 - first_decay ** state["steps"])
        second = state["second"] / (1 - second_decay ** state["steps"])
        rate = REST_RATE * group["lr"]
        if parameter.ndim > 1:
            parameter.mul_(1 - rate * group["weight_decay"])
        parameter.sub_(rate * first / (second.sqrt() + 1e-10))


def orthogonalize(matrix: Tensor, iterations: int = 5) -> Tensor:
    """About U V^T of the matrix U S V^T: its singular values are driven to between 0.7 and 1.2.

    Five Newton-Schulz iterations X <- a X + b (X X^T) X + c (X X^T)^2 X, the odd polynomial with which Jordan et al.
    lift small singular values fastest; it takes matrix products only, which are fast on any device.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide.float() / (wide.float().norm() + 1e-12)
    for _ in range(iterations):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = (x if matrix.shape[0] <= matrix.shape[1] else x.T).to(matrix.dtype)
    return result
