"""How much work a run's training is, in steps of Standard training; and how much of it is done after how many steps."""

from __future__ import annotations

from dign.runs.config import RunConfig
from dign.runs.folder import method_of

SMALL_WORK = (3 / 4) ** 2
"""Of a step on images of about three quarters the side."""
MOMENTS = [(number + 0.5) / 200 for number in range(200)]
"""Evenly spread over training."""


def standard_equivalents(config: RunConfig) -> float:
    """How many Standard trainings of the same model, data and epochs, on whole images, a run costs."""
    work = _work(config)
    return sum(work) / len(work)


def work_done(config: RunConfig, fraction: float) -> float:
    """The share of the work that is done after a fraction of the steps: the first ones may be cheaper."""
    work = _work(config)
    whole, part = divmod(fraction * len(work), 1)
    done = sum(work[: int(whole)]) + (part * work[int(whole)] if part else 0.0)
    return done / sum(work)


def _work(config: RunConfig) -> list[float]:
    """What a step costs, in Standard steps, at each of the moments."""
    method = method_of(config)
    sizes = [SMALL_WORK if moment < config.small_first else 1.0 for moment in MOMENTS]
    return [method.at(moment).cost.standard_steps * size for moment, size in zip(MOMENTS, sizes, strict=True)]
