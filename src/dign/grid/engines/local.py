"""Jobs as processes on this machine, which share out its cores, or its GPUs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from typing import Any, BinaryIO

from dign.core.errors import UserError
from dign.grid.engines import call_as_job, describe_death
from dign.grid.job import FAILED, INTERRUPTED, Job, Outcome
from dign.grid.storage import open_store
from dign.parallel.workers import end_with_parent

PATIENCE = 60.0
"""Seconds that a job has for saving a checkpoint before it is killed."""


def split_cores(runs: int, *, max_parallel: int | None, threads: int | None, gpus: int) -> tuple[int, int]:
    """(runs at once, threads of each).

    One run per GPU, where there are GPUs, otherwise one per core; the threads divide the cores. It follows from the
    number of all runs of the grid, not of those left: a grid that is restarted uses the same number of threads.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    usual = gpus or (max(1, cores // threads) if threads else cores)
    parallel = max(1, min(max_parallel or usual, runs))
    return parallel, threads or max(1, cores // parallel)


@dataclass
class _Child:
    job: Job
    slot: int
    process: subprocess.Popen[bytes]
    log: BinaryIO
    tries: int = 1


@dataclass
class LocalEngine:
    """`slots` processes at a time; one that is killed is restarted up to `retries` times."""

    slots: int
    threads: int
    retries: int = 2
    gpus: list[str] = field(default_factory=list)
    _children: list[_Child] = field(default_factory=list, init=False)
    _measuring: ProcessPoolExecutor | None = field(default=None, init=False)

    @property
    def parallel(self) -> int:
        return self.slots

    def measure(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """In a separate process, which keeps its memory like a job and ends before the first job starts."""
        self._measuring = self._measuring or ProcessPoolExecutor(1, get_context("spawn"), end_with_parent)
        try:
            return self._measuring.submit(call_as_job, self.threads, function, *arguments).result()
        except BrokenExecutor as error:
            self._end_measuring()
            raise UserError("The process that measured it died, perhaps out of memory.") from error

    def _end_measuring(self) -> None:
        if self._measuring:
            self._measuring.shutdown()
        self._measuring = None

    def start(self, job: Job) -> None:
        self._end_measuring()
        taken = {child.slot for child in self._children}
        slot = next(slot for slot in range(self.slots) if slot not in taken)
        self._children.append(self._spawn(job, slot))

    def _spawn(self, job: Job, slot: int, tries: int = 1) -> _Child:
        records = open_store(job.out).records(job.name)
        records.mkdir(parents=True, exist_ok=True)
        log = open(records / "log.txt", "ab")  # noqa: SIM115 (closed when the job has ended)
        process = subprocess.Popen(
            [sys.executable, "-m", "dign.grid.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=self._environment(slot),
            start_new_session=True,  # Ctrl-C is for the grid, which then stops its jobs
            bufsize=0,
        )
        with suppress(BrokenPipeError):  # it is dead already: `poll` will notice
            process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
        # Its standard input stays open: when it closes, the worker knows that the grid is gone.
        return _Child(job, slot, process, log, tries)

    def _environment(self, slot: int) -> dict[str, str]:
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads), "MKL_NUM_THREADS": str(self.threads)}
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[slot % len(self.gpus)]
        return environment

    def poll(self, timeout: float) -> list[tuple[str, Outcome]]:
        deadline = time.monotonic() + timeout
        while True:
            over = [child for child in self._children if child.process.poll() is not None]
            outcomes = [(child.job.name, outcome) for child in over if (outcome := self._collect(child))]
            if outcomes or time.monotonic() >= deadline:
                return outcomes
            time.sleep(0.05)

    def _collect(self, child: _Child, *, again: bool = True) -> Outcome | None:
        """The outcome of a process that has ended; None if it died and was restarted."""
        answer = child.process.stdout.read()
        for stream in (child.process.stdin, child.process.stdout, child.log):
            stream.close()
        self._children.remove(child)
        try:
            return Outcome.from_json(json.loads(answer))
        except (ValueError, TypeError):
            pass
        if again and child.tries <= self.retries:
            self._children.append(self._spawn(child.job, child.slot, child.tries + 1))
            return None
        return Outcome(FAILED, describe_death(child.tries)) if again else Outcome(INTERRUPTED)

    def stop(self) -> None:
        for child in self._children:
            if os.name == "nt":  # terminating is killing there: closing the input stops the worker
                child.process.stdin.close()
            else:
                child.process.terminate()
        deadline = time.monotonic() + PATIENCE
        for child in list(self._children):
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
            self._collect(child, again=False)

    def close(self) -> None:
        self._end_measuring()
        for child in list(self._children):  # only after an error: normally none is left
            child.process.kill()
            child.process.wait()
            self._collect(child, again=False)


def visible_gpus(device: str) -> list[str]:
    """The GPUs to distribute over the jobs; none if the configuration names the device."""
    import torch

    if device not in ("auto", "cuda") or not torch.cuda.is_available():
        return []
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return named.split(",") if named else [str(index) for index in range(torch.cuda.device_count())]
