"""Projected gradient ascent on the input: PGD, for all who need it."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.core.checks import check_at_least, check_integer
from dign.core.errors import unknown_name
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import normal_like, uniform

Objective = Callable[[Tensor], Tensor]
"""From logits (N,C) to what the attack makes as large as it can, one value per image (N,)."""
NORMS = ("linf", "l2")
STARTS = ("zero", "uniform", "gaussian")


def pgd(
    model: nn.Module,
    x: Tensor,
    objective: Objective,
    *,
    norm: str = "linf",
    radius: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = None,
    start: str = "zero",
    clip: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """x + d with ||d||_norm <= radius where `objective` is large: `steps` times d <- P(d + step_size * g).

    g is the gradient's sign (l_inf) or the gradient scaled to length one (l_2), P the projection onto the ball
    and, with `clip`, onto images in [0,1] (which takes for granted that x is one). `step_size` is
    2.5 * radius / steps unless given. `start` is d = "zero", "uniform" in the ball, or "gaussian", a small
    random step 1e-3 * N(0,I), for objectives whose gradient vanishes at d = 0.

    The model is attacked in eval mode and is left exactly as it was found; parameters get no gradient.
    x: (N,3,H,W); the result is detached and costs `steps` forward and backward passes.
    """
    PGDSettings(norm=norm, radius=radius, steps=steps, step_size=step_size, start=start, clip=clip)  # refuses nonsense
    step_size = 2.5 * radius / steps if step_size is None else step_size
    delta = _project(_start(x, norm, radius, start, generator), x, norm, radius, clip)
    with freeze_temporarily(model), torch.enable_grad():
        for _ in range(steps):
            delta.requires_grad_()
            (gradient,) = input_gradients(model, x + delta, objective, (delta,))
            delta = _project(delta.detach() + step_size * _direction(gradient, norm), x, norm, radius, clip)
    return (x + delta).clamp(0, 1) if clip else x + delta


def input_gradients(
    model: nn.Module, batch: Tensor, objective: Objective, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """The gradients of the objective with respect to whatever `batch` was made from; for a frozen model."""
    logits = model(batch)
    if logits._backward_hooks:
        # Lightning Fabric's way to insist on `fabric.backward`, which it means for training: an attack has no
        # scaled loss and no gradient to exchange.
        logits._backward_hooks.clear()
    return torch.autograd.grad(objective(logits).sum(), inputs)


def cross_entropy_of(y: Tensor) -> Objective:
    """The objective of an attack on the label: the cross-entropy of each image."""
    return lambda logits: functional.cross_entropy(logits.float(), y, reduction="none")


@dataclass(frozen=True, kw_only=True)
class PGDSettings:
    """The settings of `pgd`, for the methods that attack.

    `radius` and `step_size` are in [0,1] pixel units; a `step_size` of None is 2.5 * radius / steps.
    """

    norm: str = "linf"
    radius: float = 8 / 255
    steps: int = 7
    step_size: float | None = None
    start: str = "zero"
    clip: bool = True

    def __post_init__(self) -> None:
        check_at_least(0, radius=self.radius)
        check_integer(1, steps=self.steps)
        if self.step_size is not None:
            check_at_least(0, step_size=self.step_size)
        for kind, name, known in (("norm", self.norm, NORMS), ("start", self.start, STARTS)):
            if name not in known:
                raise unknown_name(kind, name, known)

    def attack(self, model: nn.Module, x: Tensor, objective: Objective, generator: torch.Generator | None) -> Tensor:
        return pgd(
            model, x, objective, norm=self.norm, radius=self.radius, steps=self.steps, step_size=self.step_size,
            start=self.start, clip=self.clip, generator=generator,
        )  # fmt: skip


def _start(x: Tensor, norm: str, radius: float, start: str, generator: torch.Generator | None) -> Tensor:
    if start == "zero":
        return torch.zeros_like(x)
    if start == "uniform" and norm == "linf":
        return radius * (2 * uniform(*x.shape, generator=generator, device=x.device, dtype=x.dtype) - 1)
    noise = normal_like(x, generator)
    if start == "gaussian":
        return 1e-3 * noise
    # Uniform in the l_2 ball: a random direction, and a radius whose d-th power is uniform.
    share = uniform(len(x), 1, 1, 1, generator=generator, device=x.device, dtype=x.dtype) ** (1 / x[0].numel())
    return radius * share * _direction(noise, "l2")


def _direction(gradient: Tensor, norm: str) -> Tensor:
    return gradient.sign() if norm == "linf" else gradient / _length(gradient)


def _project(delta: Tensor, x: Tensor, norm: str, radius: float, clip: bool) -> Tensor:
    delta = delta.clamp(-radius, radius) if norm == "linf" else delta * (radius / _length(delta)).clamp(max=1)
    return (x + delta).clamp(0, 1) - x if clip else delta


def _length(delta: Tensor) -> Tensor:
    """The l_2 norm of each image, (N,1,1,1), and a tiny number where it is zero."""
    norm: Tensor = torch.linalg.vector_norm(delta.flatten(1), dim=1).view(-1, 1, 1, 1)
    return norm.clamp(min=torch.finfo(delta.dtype).tiny)
