"""From a plan to its results: submit jobs to an engine, and report to a view."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dign.core.errors import UserError
from dign.grid.engines import Engine
from dign.grid.job import BUSY, DONE, FAILED, INTERRUPTED, Busy, Job, Outcome, hold_run
from dign.grid.plan import PlannedRun
from dign.grid.state import Stage, State, read_state
from dign.grid.storage import Store, open_store

WAIT_FOR_OTHERS = 5.0
"""Seconds until a run that another process works on is checked again."""


class View(Protocol):
    """What a user sees while a grid runs."""

    def on_start(self, name: str) -> None: ...

    def on_busy(self, name: str) -> None: ...

    def on_end(self, name: str, outcome: Outcome) -> None: ...

    def on_tick(self) -> None: ...


def read_states(runs: Sequence[PlannedRun], out: Path | str) -> dict[str, State]:
    """The state of each run; a folder with a different run in it is an error, before anything is started."""
    store = open_store(out)
    return {run.name: read_state(store, run) for run in runs}


def check_benchmarks(runs: Sequence[PlannedRun], states: Mapping[str, State]) -> None:
    """Raise now, not after training, if a benchmark that runs will be measured on is missing."""
    for run in runs:
        if states[run.name].stage is not Stage.DONE:
            run.evaluation.check_benchmark()


def run_plan(
    runs: Sequence[PlannedRun], states: Mapping[str, State], engine: Engine, out: Path | str, view: View
) -> dict[str, Outcome]:
    """Run everything that is not done; returns the outcomes by name, in the order in which runs ended.

    A run that another grid works on is left to it, and checked again later: two grids share the work.
    """
    store = open_store(out)
    waiting = deque((run, 0.0) for run in runs if states[run.name].stage is not Stage.DONE)
    running: dict[str, PlannedRun] = {}
    outcomes: dict[str, Outcome] = {}

    def finish(run: PlannedRun, outcome: Outcome) -> None:
        if outcome.state == BUSY:
            waiting.append((run, time.monotonic() + WAIT_FOR_OTHERS))
            view.on_busy(run.name)
        else:
            outcomes[run.name] = outcome
            view.on_end(run.name, outcome)

    with _stoppable():
        try:
            while waiting or running:
                for run in _due(waiting, engine.slots - len(running)):
                    known = _check_outcome(store, run)
                    if known:
                        finish(run, known)
                        continue
                    engine.start(Job.of(run, out, engine.threads))
                    running[run.name] = run
                    view.on_start(run.name)
                for name, outcome in engine.poll(0.5) if running else _pause(0.5 if waiting else 0.0):
                    finish(running.pop(name), outcome)
                view.on_tick()
        except KeyboardInterrupt:
            engine.stop()
            raise
    return outcomes


def _due(waiting: deque[tuple[PlannedRun, float]], room: int) -> list[PlannedRun]:
    """Take as many runs as there is room for, leaving those that it is too early to check again."""
    taken = []
    for _ in range(len(waiting)):
        run, due = waiting.popleft()
        if len(taken) < room and time.monotonic() >= due:
            taken.append(run)
        else:
            waiting.append((run, due))
    return taken


def _check_outcome(store: Store, run: PlannedRun) -> Outcome | None:
    """The outcome if it is known without a worker: another process works on the run, or has finished it."""
    try:
        with hold_run(store, run.name):
            state = read_state(store, run)
    except Busy:
        return Outcome(BUSY)
    except UserError as error:
        return Outcome(FAILED, str(error))
    return Outcome(DONE, summary=state.summary) if state.stage is Stage.DONE else None


def _pause(seconds: float) -> list[tuple[str, Outcome]]:
    time.sleep(seconds)
    return []


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM stops a grid as Ctrl-C does."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def collect_failures(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    return {
        name: outcome.error or "It was interrupted."
        for name, outcome in outcomes.items()
        if outcome.state == INTERRUPTED or outcome.error
    }
