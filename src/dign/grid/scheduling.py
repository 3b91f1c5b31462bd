"""From a plan to its results: hand jobs to an engine, tell a view what happens."""

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
from dign.grid.job import BUSY, DONE, FAILED, INTERRUPTED, Busy, Job, Outcome, held
from dign.grid.plan import PlannedRun
from dign.grid.state import Stage, State, state_of
from dign.grid.storage import Store, open_store

WAIT_FOR_OTHERS = 5.0
"""Seconds until a run is looked at again that another process was working on."""


class View(Protocol):
    """What a person sees while a grid runs."""

    def started(self, name: str) -> None: ...

    def busy(self, name: str) -> None: ...

    def ended(self, name: str, outcome: Outcome) -> None: ...

    def tick(self) -> None: ...


def states_of(runs: Sequence[PlannedRun], out: Path | str) -> dict[str, State]:
    """How far each run is; a folder that holds some other run is an error, before anything is started."""
    store = open_store(out)
    return {run.name: state_of(store, run) for run in runs}


def check_benchmarks(runs: Sequence[PlannedRun], states: Mapping[str, State]) -> None:
    """A benchmark that runs will be measured on and that is not there is an error now, not after their training."""
    for run in runs:
        if states[run.name].stage is not Stage.DONE:
            run.evaluation.check_benchmark()


def carry_out(
    runs: Sequence[PlannedRun], states: Mapping[str, State], engine: Engine, out: Path | str, view: View
) -> dict[str, Outcome]:
    """Do all that is not done; the outcomes by name, in the order in which runs ended.

    A run that another grid works on is left to it, and looked at again later: two grids share the work.
    """
    store = open_store(out)
    waiting = deque((run, 0.0) for run in runs if states[run.name].stage is not Stage.DONE)
    running: dict[str, PlannedRun] = {}
    outcomes: dict[str, Outcome] = {}

    def finish(run: PlannedRun, outcome: Outcome) -> None:
        if outcome.state == BUSY:
            waiting.append((run, time.monotonic() + WAIT_FOR_OTHERS))
            view.busy(run.name)
        else:
            outcomes[run.name] = outcome
            view.ended(run.name, outcome)

    with _stoppable():
        try:
            while waiting or running:
                for run in _due(waiting, engine.slots - len(running)):
                    known = _look(store, run)
                    if known:
                        finish(run, known)
                        continue
                    engine.start(Job.of(run, out, engine.threads))
                    running[run.name] = run
                    view.started(run.name)
                for name, outcome in engine.ended(0.5) if running else _pause(0.5 if waiting else 0.0):
                    finish(running.pop(name), outcome)
                view.tick()
        except KeyboardInterrupt:
            engine.stop()
            raise
    return outcomes


def _due(waiting: deque[tuple[PlannedRun, float]], room: int) -> list[PlannedRun]:
    """Take as many runs as there is room for, leaving those for which it is too early to look again."""
    taken = []
    for _ in range(len(waiting)):
        run, due = waiting.popleft()
        if len(taken) < room and time.monotonic() >= due:
            taken.append(run)
        else:
            waiting.append((run, due))
    return taken


def _look(store: Store, run: PlannedRun) -> Outcome | None:
    """The outcome, where no worker is needed to know it: another process is at it, or has done it by now."""
    try:
        with held(store, run.name):
            state = state_of(store, run)
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


def failures(outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    return {
        name: outcome.error or "It was interrupted."
        for name, outcome in outcomes.items()
        if outcome.state == INTERRUPTED or outcome.error
    }
