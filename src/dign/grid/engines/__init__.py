"""Engines run the jobs of a grid: as processes on this machine, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dign.core.allocator import reuse_memory
from dign.grid.job import Job, Outcome


class Engine(Protocol):
    """Takes jobs and returns their outcomes. `threads` is per job, `slots` is how many jobs are taken at once."""

    threads: int
    slots: int
    parallel: int
    """How many jobs really run at the same time, for estimates."""

    def measure(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function where the jobs will run, with as many threads."""
        ...

    def start(self, job: Job) -> None: ...

    def poll(self, timeout: float) -> list[tuple[str, Outcome]]:
        """The jobs that have ended since the last call, waiting up to `timeout` seconds for one."""
        ...

    def stop(self) -> None:
        """Let all jobs save a checkpoint, and wait for them."""
        ...

    def close(self) -> None: ...


def call_as_job(threads: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process that is set up like that of a job."""
    import torch

    reuse_memory()
    torch.set_num_threads(threads)
    return function(*arguments)


def describe_death(tries: int) -> str:
    """The message for a job whose process ended without an outcome, every time."""
    times = "once" if tries == 1 else f"{tries} times"
    return f"Its process died {times} (killed, or out of memory); start the grid again to resume from the checkpoint."
