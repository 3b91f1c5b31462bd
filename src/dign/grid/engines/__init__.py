"""Who carries out the jobs of a grid: processes on this machine, or a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dign.core.allocator import reuse_memory
from dign.grid.job import Job, Outcome


class Engine(Protocol):
    """Takes jobs and tells how they ended. `threads` is what a job gets, `slots` how many jobs are taken at once."""

    threads: int
    slots: int
    parallel: int
    """How many jobs really go on at the same time, for estimates."""

    def measure(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function where the jobs will run, with as many threads."""
        ...

    def start(self, job: Job) -> None: ...

    def ended(self, timeout: float) -> list[tuple[str, Outcome]]:
        """The jobs that have ended since the last call, waiting up to `timeout` seconds for one."""
        ...

    def stop(self) -> None:
        """Let all jobs save where they are, and wait for them."""
        ...

    def close(self) -> None: ...


def call_as_a_job(threads: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process that is set up as those of the jobs are."""
    import torch

    reuse_memory()
    torch.set_num_threads(threads)
    return function(*arguments)


def died(tries: int) -> str:
    """The sentence for a job whose process went without an outcome, every time."""
    times = "once" if tries == 1 else f"{tries} times"
    return f"Its process died {times} (killed, or out of memory); start the grid again to go on from the checkpoint."
