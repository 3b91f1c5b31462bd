"""Jobs on a Ray cluster: Ray schedules, places and retries them; this submits them and waits."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dign.core.allocator import reuse_memory
from dign.core.errors import UserError, summarize_error
from dign.grid.engines import call_as_job, describe_death
from dign.grid.job import FAILED, INTERRUPTED, Job, Outcome, run_job

PATIENCE = 60.0


def run_remote_job(job: dict[str, Any]) -> dict[str, Any]:
    """What a Ray worker executes; plain dictionaries, so that versions of this package may differ a little."""
    reuse_memory()
    return run_job(Job(**job)).to_json()


class RayEngine:
    """Every job is a Ray task with `threads` CPUs and `gpus` GPUs, tried again where a worker or a node dies.

    `address` is that of a running cluster; without one, Ray is started on this machine and stopped at the end.
    """

    def __init__(
        self,
        *,
        address: str | None = None,
        threads: int = 1,
        gpus: float | None = None,
        retries: int = 2,
        max_parallel: int | None = None,
    ) -> None:
        self.ray = _connect(address)
        total = self.ray.cluster_resources()
        self.threads, self.retries = threads, retries
        self.gpus = gpus if gpus is not None else float(min(1, total.get("GPU", 0)))
        self._check_resources(total)
        room = int(total.get("CPU", 1) // threads)
        if self.gpus:
            room = min(room, int(total["GPU"] / self.gpus))
        self.parallel = max(1, min(max_parallel or room, room))
        self.slots = max_parallel or 1_000_000  # Ray keeps the queue
        needs = {"num_cpus": threads, "num_gpus": self.gpus, "max_calls": 1}
        self._task = self.ray.remote(max_retries=retries, **needs)(run_remote_job)
        self._measuring = self.ray.remote(**needs)(call_as_job)
        self._names: dict[Any, str] = {}

    def _check_resources(self, total: dict[str, float]) -> None:
        for kind, wanted in (("CPU", self.threads), ("GPU", self.gpus)):
            if wanted > total.get(kind, 0):
                raise UserError(
                    f"A run needs {wanted:g} {kind}s, but the Ray cluster has {total.get(kind, 0):g} in all: lower "
                    f"{'`threads`' if kind == 'CPU' else '`gpus`'}."
                )

    def measure(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return self.ray.get(self._measuring.remote(self.threads, function, *arguments))
        except self.ray.exceptions.RayTaskError as error:
            raise error.cause from error

    def start(self, job: Job) -> None:
        self._names[self._task.options(name=job.name).remote(asdict(job))] = job.name

    def poll(self, timeout: float) -> list[tuple[str, Outcome]]:
        if not self._names:
            return []
        over, _ = self.ray.wait(list(self._names), num_returns=1, timeout=timeout)
        return [(self._names.pop(task), self._outcome(task)) for task in over]

    def _outcome(self, task: Any) -> Outcome:
        errors = self.ray.exceptions
        try:
            return Outcome.from_json(self.ray.get(task))
        except (errors.TaskCancelledError, KeyboardInterrupt):
            return Outcome(INTERRUPTED)
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError):
            return Outcome(FAILED, describe_death(1 + self.retries))
        except errors.RayError as error:
            reason = str(getattr(error, "cause", None) or error).strip().splitlines()[-1]
            return Outcome(FAILED, f"Ray could not run it: {reason}")

    def stop(self) -> None:
        for task in self._names:
            self.ray.cancel(task)  # arrives like Ctrl-C: the run saves a checkpoint
        if self._names:
            self.ray.wait(list(self._names), num_returns=len(self._names), timeout=PATIENCE)
        self._names.clear()

    def close(self) -> None:
        self.ray.shutdown()


def _connect(address: str | None) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
    try:
        import ray
    except ImportError as error:
        raise UserError("The Ray engine needs Ray: pip install 'dign[ray]'.") from error
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    options = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
    except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
        reason = summarize_error(error)
        raise UserError(f"No connection to the Ray cluster '{address}': {reason}") from error
    return ray
