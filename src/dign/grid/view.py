"""What a user sees of a grid: the plan, a live table while it runs, plain lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dign.evaluation.result_parts import Summary
from dign.grid.estimate import Expected, time_left
from dign.grid.job import DONE, Outcome
from dign.grid.plan import Plan, PlannedRun
from dign.grid.state import Stage, State
from dign.grid.storage import LocalStore, Store
from dign.training.cost import describe_duration, standard_equivalents, work_curve

STAGES = {Stage.NEW: "to run", Stage.BEGUN: "to resume", Stage.TRAINED: "to evaluate", Stage.DONE: "done"}
REDRAW = {True: 0.5, False: 10.0}
"""Seconds between two drawings of the live table: of runs in a local folder, and of runs under a URL."""
SHOWN_ENDS = 8
"""How many of the last runs that ended stay in the live table."""


def plan_table(
    plan: Plan,
    states: Mapping[str, State],
    fractions: Mapping[str, float],
    expected: Mapping[str, Expected | str] | None,
) -> Table:
    """One row for runs that differ in their seed alone; its time is that of one after another."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    for heading in ("seeds", "state", "cost", "time"):
        table.add_column(heading, justify="left" if heading == "state" else "right")
    for label in dict.fromkeys(run.label for run in plan.runs):
        runs = [run for run in plan.runs if run.label == label]
        seeds = ", ".join(str(run.config.seed) for run in runs)
        cost = sum(standard_equivalents(run.config) for run in runs)
        seconds = time_left(runs, states, fractions, expected, 1) if expected else None
        table.add_row(
            Text(label), seeds, _stages(runs, states), f"{cost:.1f}", describe_duration(seconds) if expected else "–"
        )
    return table


def _stages(runs: Sequence[PlannedRun], states: Mapping[str, State]) -> str:
    found = [states[run.name].stage for run in runs]
    counts = {stage: found.count(stage) for stage in Stage if stage in found}
    if len(counts) == 1:
        return STAGES[found[0]]
    return ", ".join(f"{count} {STAGES[stage]}" for stage, count in counts.items())


def plan_summary(
    plan: Plan,
    states: Mapping[str, State],
    fractions: Mapping[str, float],
    expected: Mapping[str, Expected | str] | None,
    parallel: int,
    threads: int,
) -> str:
    """The plan in one or two sentences."""
    left = [run for run in plan.runs if states[run.name].stage is not Stage.DONE]
    training = [run for run in left if states[run.name].stage is not Stage.TRAINED]
    text = f"{_runs(len(plan.runs))}, {len(plan.runs) - len(left)} done. "
    if not left:
        return text + "Nothing is left to do."
    shares = [1 - work_curve(run.config)(fractions.get(run.name, 0.0)) for run in training]
    cost = sum(standard_equivalents(run.config) * share for run, share in zip(training, shares, strict=True))
    text += f"Left: {_runs(len(left))}, {cost:.1f} Standard-equivalents; {parallel} at once"
    text += f" with {threads} thread{'s' if threads > 1 else ''} each"
    if not expected:
        return text + "."
    seconds = time_left(plan.runs, states, fractions, expected, parallel)
    if seconds is None:
        reason = next(known for run in left if isinstance(known := expected[run.name], str))
        return text + f". The time could not be measured: {reason}"
    return text + f", about {describe_duration(seconds)} (from a short measurement)."


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def scores(summary: Summary | None) -> str:
    """A run's results in a few words."""
    if summary is None:
        return ""
    parts = {"clean": summary.clean_accuracy, summary.mca_n_name: summary.mca_n}
    if summary.goes_beyond_noise:
        parts[summary.mca_name] = summary.mca
    parts["ECE-N" if summary.noise_complete else "ECE under noise"] = (
        summary.calibration.noise.ece if summary.calibration.noise else None
    )
    return ", ".join(f"{name} {value:.1f} %" for name, value in parts.items() if value is not None)


class RunningView:
    """Follows a grid: a live table in a terminal, a line per event elsewhere."""

    def __init__(self, plan: Plan, states: Mapping[str, State], store: Store, *, quiet: bool = False) -> None:
        self.store = store
        self.console = Console(stderr=True, quiet=quiet, soft_wrap=True)
        self.total = len(plan.runs)
        self.finished = sum(state.stage is Stage.DONE for state in states.values())
        self.failed = 0
        self.drawn = 0.0
        self.begun: dict[str, float] = {}
        self.stages: dict[tuple[str, str], tuple[float, float]] = {}
        """When each stage of a run was first seen, and how much of it was done then: what went before is not speed."""
        self.resumed = {name for name, state in states.items() if state.stage is not Stage.NEW}
        self.elsewhere: set[str] = set()
        self.ends: list[tuple[str, Outcome]] = []
        self.live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal and not quiet else None

    def __enter__(self) -> RunningView:
        if self.live:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live:
            self.live.stop()

    def on_start(self, name: str) -> None:
        self.begun[name] = time.time()
        if name not in self.elsewhere:
            self._say(f"{name}: {'resumed' if name in self.resumed else 'starts'}")

    def on_busy(self, name: str) -> None:
        self.begun.pop(name, None)
        if name not in self.elsewhere:
            self.elsewhere.add(name)
            self._say(f"{name}: another process works on it; waiting")

    def on_end(self, name: str, outcome: Outcome) -> None:
        self.begun.pop(name, None)
        self.elsewhere.discard(name)
        self.finished += outcome.state == DONE
        self.failed += outcome.state != DONE
        self.ends.append((name, outcome))
        what = scores(outcome.summary) if outcome.state == DONE else f"{outcome.state}: {outcome.error or ''}"
        self._say(f"[{self.finished + self.failed}/{self.total}] {name}: {what} ({describe_duration(outcome.seconds)})")

    def _say(self, text: str) -> None:
        if not self.live:
            self.console.print(text, highlight=False, markup=False)

    def on_tick(self) -> None:
        if self.live and time.monotonic() - self.drawn >= REDRAW[isinstance(self.store, LocalStore)]:
            self.live.update(self.table(), refresh=True)
            self.drawn = time.monotonic()

    def table(self) -> Group:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("run", "state", "done", "time", "left"):
            table.add_column(heading, justify="right" if heading in ("done", "time", "left") else "left")
        for name, outcome in self.ends[-SHOWN_ENDS:]:
            good = outcome.state == DONE
            text = scores(outcome.summary) if good else f"{outcome.state}: {outcome.error or ''}"
            style = "green" if good else "red"
            table.add_row(Text(name), Text(text, style=style), "", describe_duration(outcome.seconds), "")
        rows = [row for name, since in self.begun.items() if (row := self._running_row(name, since))]
        for row in rows:
            table.add_row(*row)
        for name in self.elsewhere - self.begun.keys():
            table.add_row(Text(name), "another process works on it", "", "", "")
        waiting = self.total - self.finished - self.failed - len(rows)
        failed = f", {self.failed} failed" if self.failed else ""
        return Group(table, Text(f"{self.finished} of {self.total} done{failed}, {waiting} waiting"))

    def _running_row(self, name: str, since: float) -> tuple[Any, ...] | None:
        """A run that is under way; None while it waits for its worker, in Ray's queue for instance."""
        progress = self.store.progress(name) or {}
        now, stage, fraction = time.time(), str(progress.get("stage", "")), progress.get("fraction", 0.0)
        if not isinstance(fraction, float) or progress.get("time", 0.0) < since:
            return None
        began, start = self.stages.setdefault((name, stage), (now, fraction))
        gained = fraction - start
        left = describe_duration((now - began) * (1 - fraction) / gained) if gained > 0.01 else ""
        return Text(name), Text(stage), f"{100 * fraction:.0f} %", describe_duration(now - since), left
