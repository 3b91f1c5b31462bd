"""From a plan to its results: hand jobs to an engine, tell a view what happens."""

from __future__ import annotations

import signal
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from dign.grid.engines import Engine
from dign.grid.job import BUSY, INTERRUPTED, Job, Outcome
from dign.grid.plan import PlannedRun
from dign.grid.state import Stage, State, state_of
from dign.grid.store import open_store

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


def carry_out(
    runs: Sequence[PlannedRun], states: Mapping[str, State], engine: Engine, out: Path | str, view: View
) -> dict[str, Outcome]:
    """Do all that is not done; the outcomes by name, in the order in which runs ended.

    A run that another grid works on is left to it, and looked at again later: two grids share the work.
    """
    waiting = deque((Job.of(run, out, engine.threads), 0.0) for run in runs if states[run.name].stage is not Stage.DONE)
    running: dict[str, Job] = {}
    outcomes: dict[str, Outcome] = {}
    with _stoppable():
        try:
            while waiting or running:
                _fill(waiting, running, engine, view)
                for name, outcome in engine.ended(0.5) if running else _pause():
                    job = running.pop(name)
                    if outcome.state == BUSY:
                        waiting.append((job, time.monotonic() + WAIT_FOR_OTHERS))
                        view.busy(name)
                    else:
                        outcomes[name] = outcome
                        view.ended(name, outcome)
                view.tick()
        except KeyboardInterrupt:
            engine.stop()
            raise
    return outcomes


def _fill(waiting: deque[tuple[Job, float]], running: dict[str, Job], engine: Engine, view: View) -> None:
    """Start what is due while there is room."""
    for _ in range(len(waiting)):
        if len(running) >= engine.slots:
            return
        job, due = waiting.popleft()
        if time.monotonic() < due:
            waiting.append((job, due))
            continue
        engine.start(job)
        running[job.name] = job
        view.started(job.name)


def _pause() -> list[tuple[str, Outcome]]:
    time.sleep(0.5)
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
