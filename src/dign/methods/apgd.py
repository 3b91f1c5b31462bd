"""APGD (Croce and Hein, 2020): projected gradient ascent with momentum that chooses its own step size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.divergences import at_least_float32
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of
from dign.methods.attacks import Objective, PGDSettings, input_gradients, project, start_in_ball, steepest

MOMENTUM = 0.75
"""Share of the new step in a step; the rest goes on in the direction of the last one."""
PROGRESS = 0.75
"""Share of the steps since the last checkpoint that must have risen for the step size to be kept."""


@torch.no_grad()
def apgd(
    model: nn.Module,
    x: Tensor,
    objective: Objective,
    *,
    norm: str = "linf",
    radius: float = 8 / 255,
    steps: int = 20,
    start: str | Tensor = "uniform",
    generator: torch.Generator | None = None,
) -> Tensor:
    """Images x + d with ||d|| <= radius, in [0,1], where `objective` is largest among all that were visited.

    Steps begin at twice the radius. At checkpoints an image whose objective has risen too rarely, or not at all, goes
    back to the best point it has seen and takes steps half as long. It costs `steps` + 1 forward and `steps` backward
    passes. The model is attacked in eval mode and left exactly as it was; parameters get no gradient.

    Args:
        model: Any module from images to logits.
        x: Images (N,3,H,W) in [0,1].
        objective: What to maximize, e.g. `cross_entropy_of(y)` or `targeted_dlr(y, target)`.
        norm: The ball's norm, "linf" or "l2".
        radius: The ball's radius, in [0,1] pixel units.
        steps: The number of steps.
        start: The first d, as of `pgd`.
        generator: The source of the random start.

    Returns:
        The attacked images, detached.

    Raises:
        UserError: A setting is out of range.

    >>> from dign.methods.attacks import cross_entropy_of
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> x, y = torch.rand(4, 3, 8, 8), torch.arange(4)
    >>> attacked = apgd(model, x, cross_entropy_of(y), radius=0.1)
    >>> bool((attacked - x).abs().max() <= 0.1 + 1e-6)
    True
    """
    PGDSettings(norm=norm, radius=radius, steps=steps)  # checks them

    def move(to: Tensor) -> Tensor:
        return project(to - x, x, norm, radius, clip=True)

    delta = move(x + start_in_ball(x, norm, radius, start, generator))
    with freeze_temporarily(model):
        value, gradient = _ascend(model, x, delta, objective)
        search = _Search(delta, gradient, value, 2 * radius, _checkpoints(steps))
        previous = delta
        for step in range(1, steps + 1):
            here = x + delta
            further = move(here + search.step_size * steepest(gradient, norm))
            if step > 1:
                further = move(here + MOMENTUM * (further - delta) + (1 - MOMENTUM) * (delta - previous))
            previous, delta = delta, further
            if step == steps:
                search.see(delta, gradient, _values(model, x + delta, objective))
                break
            value, gradient = _ascend(model, x, delta, objective)
            search.see(delta, gradient, value)
            delta, gradient = search.look_back(step, delta, gradient)
    return (x + search.best).clamp(0, 1)


@dataclass
class _Search:
    """The best point of every image so far, and whether its steps still pay."""

    best: Tensor
    gradient: Tensor
    value: Tensor
    length: float
    checkpoints: dict[int, int]

    def __post_init__(self) -> None:
        self.step_size = torch.full_like(self.value, self.length).view(-1, 1, 1, 1)
        self.last = self.value
        self.rises = torch.zeros_like(self.value)
        self.value_before = self.value
        self.halved_before = torch.ones_like(self.value, dtype=torch.bool)

    def see(self, delta: Tensor, gradient: Tensor, value: Tensor) -> None:
        self.rises += value > self.last
        self.last = value
        better = value > self.value
        wide = better.view(-1, 1, 1, 1)
        self.best = torch.where(wide, delta, self.best)
        self.gradient = torch.where(wide, gradient, self.gradient)
        self.value = torch.where(better, value, self.value)

    def look_back(self, step: int, delta: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """At a checkpoint: half the step size, and back to the best point, where that is called for."""
        if step not in self.checkpoints:
            return delta, gradient
        rarely = self.rises < PROGRESS * self.checkpoints[step]
        stuck = ~self.halved_before & (self.value <= self.value_before)
        halve = rarely | stuck
        wide = halve.view(-1, 1, 1, 1)
        self.step_size = torch.where(wide, self.step_size / 2, self.step_size)
        self.halved_before, self.value_before = halve, self.value
        self.rises = torch.zeros_like(self.rises)
        self.last = torch.where(halve, self.value, self.last)
        return torch.where(wide, self.best, delta), torch.where(wide, self.gradient, gradient)


def _checkpoints(steps: int) -> dict[int, int]:
    """After which steps to look back, and how many steps lie since the look before.

    >>> _checkpoints(20)
    {5: 5, 9: 4, 12: 3, 14: 2, 16: 2, 18: 2, 19: 1, 20: 1}
    """
    shares = [0.0, 0.22]
    while shares[-1] < 1:
        shares.append(shares[-1] + max(shares[-1] - shares[-2] - 0.03, 0.06))
    places = sorted({min(steps, math.ceil(round(share * steps, 6))) for share in shares[1:]})
    return {place: place - before for before, place in zip([0, *places], places, strict=False)}


def _ascend(model: nn.Module, x: Tensor, delta: Tensor, objective: Objective) -> tuple[Tensor, Tensor]:
    """The objective of every image, and its gradient, in one pass."""
    values: list[Tensor] = []

    def remember(logits: Tensor) -> Tensor:
        values.append(objective(logits))
        return values[0]

    with torch.enable_grad():
        moved = (x + delta).requires_grad_()
        (gradient,) = input_gradients(model, moved, remember, (moved,))
    return values[0].detach(), gradient


def _values(model: nn.Module, batch: Tensor, objective: Objective) -> Tensor:
    return objective(logits_of(model(batch)))


def targeted_dlr(y: Tensor, target: Tensor) -> Objective:
    """The targeted difference of logits ratio: (z_t - z_y) / (z_1 - (z_3 + z_4) / 2), z_k the k-th largest logit.

    It does not change when all logits are shifted or multiplied, so that a model cannot hide its gradient behind large
    logits. With three classes the denominator is z_1 - z_3; with two there is no such ratio, and the difference stands.

    Args:
        y: The true classes (N,).
        target: The classes (N,) that the attack wants instead.

    >>> targeted_dlr(torch.tensor([0]), torch.tensor([1]))(torch.tensor([[4.0, 2.0, 1.0, 1.0]]))
    tensor([-0.6667])
    """

    def objective(logits: Tensor) -> Tensor:
        z = at_least_float32(logits)
        gap = (z.gather(1, target[:, None]) - z.gather(1, y[:, None])).squeeze(1)
        if z.shape[1] == 2:
            return gap
        top = z.topk(min(4, z.shape[1]), dim=1).values
        spread = top[:, 0] - (top[:, 2] if z.shape[1] == 3 else (top[:, 2] + top[:, 3]) / 2)
        return gap / (spread + 1e-12)

    return objective
