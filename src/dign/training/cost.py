"""How much work a run's training is: in steps of Standard training, in arithmetic, and after how many steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import nn

from dign.core.freezing import freeze_temporarily
from dign.models.winograd import use_winograd
from dign.parallel.devices import resolve_precision
from dign.runs.config import RunConfig
from dign.runs.folder import make_run_method

SMALL_WORK = (3 / 4) ** 2
"""The work of a step on images of about three quarters the side."""
MOMENTS = [(number + 0.5) / 200 for number in range(200)]
"""Evenly spaced over training."""


def standard_equivalents(config: RunConfig) -> float:
    """How many Standard trainings of the same model, data and epochs, on full-size images, a run costs."""
    costs = _step_costs(config)
    return sum(costs) / len(costs)


def work_curve(config: RunConfig) -> Callable[[float], float]:
    """A function from the fraction of steps done to the fraction of work done: the first steps may be cheaper."""
    costs = _step_costs(config)
    total = sum(costs)

    def work(fraction: float) -> float:
        complete, part = divmod(fraction * len(costs), 1)
        done = sum(costs[: int(complete)]) + (part * costs[int(complete)] if part else 0.0)
        return done / total

    return work


def _step_costs(config: RunConfig) -> list[float]:
    """The cost of a step, in Standard steps, at each of the moments."""
    method = make_run_method(config)
    sizes = [SMALL_WORK if moment < config.small_first else 1.0 for moment in MOMENTS]
    return [method.at(moment).cost.standard_steps * size for moment, size in zip(MOMENTS, sizes, strict=True)]


FLOPS_PER_THREAD = 4e10
"""Floating-point operations per second of a CPU core on convolutions: the order of magnitude, not a measurement."""


def estimate_cpu_seconds(config: RunConfig, model: nn.Module, image_size: tuple[int, int], images: int) -> float | None:
    """A rough estimate of the training time on this CPU, from counted operations; None where they cannot be counted.

    `model` is on the meta device, where nothing is computed. A backward pass counts as two forward passes.
    """
    from torch.utils.flop_counter import FlopCounterMode

    forward: Any = None
    with suppress(Exception), torch.no_grad():  # some models cannot be traced on that device
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros(2, 3, *image_size, device="meta"))
        forward = counter.get_total_flops() / 2
    if not forward:
        return None
    operations = 3 * forward * images * config.epochs * standard_equivalents(config)
    threads = torch.get_num_threads() * config.devices * config.nodes
    return float(operations / (FLOPS_PER_THREAD * threads))


TRAINING_PER_FORWARD = 4
"""How many times as long as a prediction a step of Standard training takes, roughly."""
MEASURED_IMAGES = 8


@torch.no_grad()
def measure_cpu_seconds(config: RunConfig, model: nn.Module, image_size: tuple[int, int], images: int) -> float:
    """The training time on this CPU, from the time of a few predictions: right within a factor of two or so."""
    if config.winograd:
        use_winograd(model)
    if config.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.full((MEASURED_IMAGES, 3, *image_size), 0.5)
    in_half = "bf16" in resolve_precision(config.precision, torch.device("cpu"))
    seconds = []
    with freeze_temporarily(model), torch.autocast("cpu", dtype=torch.bfloat16, enabled=in_half):
        for _ in range(3):  # the first one warms up
            start = time.perf_counter()
            model(x)
            seconds.append(time.perf_counter() - start)
    step = TRAINING_PER_FORWARD * min(seconds) / MEASURED_IMAGES
    return step * images * config.epochs * standard_equivalents(config) / (config.devices * config.nodes)


def describe_duration(seconds: float | None) -> str:
    """A time for people.

    >>> [describe_duration(seconds) for seconds in (45, 750, 12_600, 180_000, None)]
    ['45 s', '12 min', '3.5 h', '2.1 days', '?']
    """
    if seconds is None:
        return "?"
    for unit, size, limit in (("s", 1, 100), ("min", 60, 100), ("h", 3600, 48)):
        if seconds < limit * size:
            value = seconds / size
            return f"{value:.0f} {unit}" if unit != "h" or value >= 10 else f"{value:.1f} h"
    return f"{seconds / 86400:.1f} days"
