"""What a grid will cost: in Standard trainings, and in time, from a short measurement of each kind of run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dign.core.errors import UserError, summarize_error
from dign.grid.measure import Extent, Speed, measure_speed
from dign.grid.plan import PlannedRun
from dign.grid.state import Stage, State
from dign.runs.config import RunConfig
from dign.runs.epochs import fill_epochs
from dign.runs.folder import make_run_method
from dign.training.cost import standard_equivalents, work_curve
from dign.training.setup import MODEL_ERRORS

KNOWN = {"cifar10": (50_000, 10_000, 32, 10), "cifar100": (50_000, 10_000, 32, 100),
         "tiny-imagenet": (100_000, 10_000, 64, 200)}  # fmt: skip
"""Training images, test images, size and classes of data sets that a plan need not load."""


@dataclass(frozen=True)
class Expected:
    """Seconds that a run takes from start to end."""

    training: float
    evaluation: float

    def left(self, stage: Stage, fraction: float) -> float:
        """Seconds left for a run at this stage, with `fraction` of the training's work done."""
        if stage is Stage.DONE:
            return 0.0
        training = 0.0 if stage is Stage.TRAINED else self.training * (1 - fraction)
        return training + self.evaluation


def get_kind(run: PlannedRun) -> tuple[Any, ...]:
    """Runs of one kind take equally long: settings that do not change the work are left out."""
    config = replace(run.config, seed=0, validation_seed=0, lr=0.1, momentum=0.9, weight_decay=0.0, settings={})
    return (config, standard_equivalents(run.config), run.evaluation)


def estimate_times(runs: Iterable[PlannedRun], measure: Callable[..., Any]) -> dict[str, Expected | str]:
    """Each run's expected time, or a sentence why there is none. Measures each kind of run once."""
    by_kind: dict[str, Expected | str] = {}
    expected: dict[str, Expected | str] = {}
    for run in runs:
        kind = repr(get_kind(run))
        if kind not in by_kind:
            try:
                extent = get_extent(run.config, run.evaluation.split)
                extent = replace(extent, evaluated=min(extent.evaluated, run.evaluation.images or extent.evaluated))
                speed = measure(measure_speed, run.config, extent, run.evaluation)
                by_kind[kind] = estimate_run(run, extent, speed)
            except (UserError, OSError, *MODEL_ERRORS) as error:
                by_kind[kind] = summarize_error(error)
        expected[run.name] = by_kind[kind]
    return expected


def estimate_run(run: PlannedRun, extent: Extent, speed: Speed) -> Expected:
    batch = min(run.config.batch_size, extent.train)
    shown = fill_epochs(run.config, extent.train).epochs * (extent.train // batch) * batch
    severities = len(run.evaluation.severity)
    conditions = 1 + severities * len(run.evaluation.corruptions)
    made = 0.0 if run.evaluation.benchmark else severities * speed.corrupt
    measured = make_run_method(run.config).at(1.0).cost.standard_steps  # earlier steps may be cheaper
    training = shown * speed.step * standard_equivalents(run.config) / measured
    return Expected(training, extent.evaluated * (conditions * speed.predict + made))


def get_extent(config: RunConfig, split: str = "test") -> Extent:
    """The data of a run that is evaluated on this split: from what is known of a data set, or by loading it."""
    if config.data in KNOWN:
        total, test, size, classes = KNOWN[config.data]
        size = config.size or size
        train = round(total * (1 - config.validation))
        evaluated = {"test": test, "train": train, "validation": total - train}[split]
        return Extent(train, evaluated, (size, size), classes)
    from dign.runs.folder import load_run_data

    data = load_run_data(config)
    return Extent(len(data.train), len(getattr(data, split)), data.image_size, len(data.classes))


def makespan(seconds: Iterable[float], parallel: int) -> float:
    """Time until all is done when each of `parallel` workers takes the next job as soon as it is free."""
    free = [0.0] * max(1, parallel)
    for duration in seconds:
        heapq.heappush(free, heapq.heappop(free) + duration)
    return max(free)


def time_left(
    runs: Iterable[PlannedRun],
    states: Mapping[str, State],
    fractions: Mapping[str, float],
    expected: Mapping[str, Expected | str],
    parallel: int,
) -> float | None:
    """Expected seconds for all that is not done; None if one of those runs could not be measured."""
    left = []
    for run in runs:
        if states[run.name].stage is Stage.DONE:
            continue
        known = expected[run.name]
        if isinstance(known, str):
            return None
        done = work_curve(run.config)(fractions.get(run.name, 0.0))
        left.append(known.left(states[run.name].stage, done))
    return makespan(left, parallel)
