"""The four quantities of the paper's Figure 2, for one model, streamed over images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least
from dign.core.derivatives import norms, per_image
from dign.core.divergences import log_probabilities
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import image_noise
from dign.core.pixels import to_float
from dign.landscape.batch_size import Progress, find_batch_size, run_in_batches
from dign.landscape.curvature import squared_difference
from dign.landscape.gradients import check_batch, check_logits, cross_entropy, input_gradients

PANELS = ("loss_difference", "accuracy", "first_order", "second_order")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure: radii in [0,1] pixel units (l2), random draws per image, the step of the differences, a seed."""

    radii: tuple[float, ...]
    draws: int = 4
    eta: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.radii:
            raise UserError("`radii` is empty: give at least one, for example 1,2,4.")
        for radius in self.radii:
            check_at_least(0, radius=radius)
        check_at_least(1, draws=self.draws)
        if not 0 < self.eta < math.inf:
            raise UserError(f"eta, the step of the centered differences, must be above 0, not {self.eta}.")

    @property
    def gradient_evaluations(self) -> int:
        """Per image: one at the image, and two per draw for the curvature."""
        return 1 + 2 * self.draws

    @property
    def forward_passes(self) -> int:
        """Per image: one per draw and radius (those of the gradient evaluations are not counted)."""
        return self.draws * sum(radius > 0 for radius in self.radii)


def default_radii(dimension: int, count: int = 8) -> tuple[float, ...]:
    """`count` radii up to 0.2 sqrt(d), the typical norm of the strongest noise that DiGN trains with on CIFAR."""
    largest = 0.2 * math.sqrt(dimension)
    return tuple(round(largest * step / count, 3) for step in range(1, count + 1))


@dataclass(frozen=True)
class Landscape:
    """Per-image values: (N,R) over the radii, averaged over draws, or (N,)."""

    plan: Plan
    loss: Tensor
    correct: Tensor
    gradient_norm: Tensor
    curvature: Tensor
    """E ||H z||^2 by centered differences."""
    loss_difference: Tensor
    accuracy: Tensor

    def panel(self, name: str) -> Tensor:
        """One of the four panels, per image and radius (N,R)."""
        radii = torch.tensor(self.plan.radii, dtype=self.loss.dtype)
        return {
            "loss_difference": self.loss_difference,
            "accuracy": 100 * self.accuracy,
            "first_order": self.gradient_norm[:, None] * radii,
            "second_order": 0.5 * self.curvature[:, None] * radii.square(),
        }[name]

    def summary(self) -> dict[str, Any]:
        """For a file: means over images with their standard errors, and the medians that a heavy tail needs."""
        values = {name: _summary(getattr(self, name)) for name in ("loss", "gradient_norm", "curvature")}
        return {
            "images": len(self.loss),
            "clean_accuracy": 100 * float(self.correct.mean()),
            **values,
            "panels": {name: _summary(self.panel(name)) for name in PANELS},
        }


def _summary(values: Tensor) -> dict[str, Any]:
    """Mean, standard error of the mean over images, and median, over the first axis."""
    values = values.double()
    error = values.std(0) / math.sqrt(len(values)) if len(values) > 1 else torch.zeros_like(values[0])
    return {
        "mean": values.mean(0).tolist(),
        "standard_error": error.tolist(),
        "median": values.median(0).values.tolist(),
    }


def measure(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    plan: Plan,
    *,
    device: torch.device | str = "cpu",
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Landscape:
    """Measure a model, on `device` already, on uint8 images (N,3,H,W), which go there batch by batch.

    Cost per image: `plan.gradient_evaluations` and `plan.forward_passes`. `batch_size` None takes what fits.
    """
    if len(images) == 0:
        raise UserError("There are no images to measure on: choose another split.")
    with freeze_temporarily(model):
        batch_size = batch_size or find_batch_size(model, to_float(images[:1].to(device)))

        def work(batch: slice) -> dict[str, Tensor]:
            x = to_float(images[batch].to(device))
            return measure_batch(model, x, labels[batch].to(device), plan, first=batch.start)

        return Landscape(plan, **run_in_batches(len(images), batch_size, work, progress))


def measure_batch(model: nn.Module, x: Tensor, y: Tensor, plan: Plan, *, first: int = 0) -> dict[str, Tensor]:
    """The fields of `Landscape` for one batch of float images, the first of which is number `first` of all."""
    check_batch(x, y)
    loss, gradients, log_p = input_gradients(model, x, y)
    noise = {"first": first, "seed": plan.seed}
    curvature = torch.zeros_like(loss)
    difference = loss.new_zeros(len(x), len(plan.radii))
    correct = (log_p.argmax(1) == y).to(loss)
    accuracy = torch.zeros_like(difference)
    for draw in range(plan.draws):
        z = image_noise(x, purpose="curvature", draw=draw, **noise)
        curvature += squared_difference(model, x, y, z, plan.eta) / plan.draws
        u = image_noise(x, purpose="radius", draw=draw, **noise)
        direction = u / per_image(norms(u), u)
        for column, radius in enumerate(plan.radii):
            if radius == 0:
                accuracy[:, column] += correct / plan.draws
                continue
            moved, right = _loss_and_correct(model, x + radius * direction, y)
            difference[:, column] += (moved - loss).abs() / plan.draws
            accuracy[:, column] += right / plan.draws
    return {
        "loss": loss,
        "correct": correct,
        "gradient_norm": norms(gradients),
        "curvature": curvature,
        "loss_difference": difference,
        "accuracy": accuracy,
    }


def _loss_and_correct(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    with freeze_temporarily(model), torch.no_grad():
        log_p = check_logits(log_probabilities(model(x)), x, y)
    return cross_entropy(y)(log_p), (log_p.argmax(1) == y).to(log_p)
