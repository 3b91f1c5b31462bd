"""Learning rates as functions of time: nothing to save, nothing to resume."""

import math
from collections.abc import Callable

SCHEDULES: dict[str, Callable[[float, float], float]] = {
    "constant": lambda progress, warmup: 1.0,
    "step": lambda progress, warmup: 0.1 ** math.floor(3 * progress + 1e-9),
    "cosine": lambda progress, warmup: 0.5 * (1 + math.cos(math.pi * progress)),
    "one-cycle": lambda progress, warmup: (
        progress / warmup if progress < warmup else (1 - progress) / max(1 - warmup, 1e-9)
    ),
}


def learning_rate(schedule: str, peak: float, step: int, total: int, *, warmup: float = 0.2) -> float:
    """The learning rate of step 0..total-1.

    step: x0.1 at each third (epochs 50 and 100 of the paper's 150); cosine: half a cosine down to 0;
    one-cycle: linearly up over the fraction `warmup`, then linearly down to 0. The last two are taken at the
    middle of the step, so that no step is wasted at rate 0.
    """
    progress = step / total if schedule == "step" else (step + 0.5) / total
    return peak * SCHEDULES[schedule](progress, warmup)
