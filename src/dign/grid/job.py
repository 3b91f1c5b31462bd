"""One run of a grid, from whatever state it is in to its results, in the calling process."""

from __future__ import annotations

import json
import os
import platform
import shutil
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any

from dign.core.errors import UserError
from dign.core.files import read_json, write_json
from dign.evaluation.result_parts import Summary
from dign.grid.evaluate_table import Evaluation
from dign.grid.plan import PlannedRun
from dign.grid.state import Stage, State, read_state
from dign.grid.storage import LocalStore, Store, open_store
from dign.runs.config import RunConfig

DONE, FAILED, BUSY, INTERRUPTED = "done", "failed", "busy", "interrupted"


@dataclass(frozen=True)
class Job:
    """What a worker receives, as JSON: nothing in it depends on the machine that it runs on."""

    name: str
    out: str
    config: dict[str, Any]
    evaluation: dict[str, Any]
    threads: int

    @classmethod
    def of(cls, run: PlannedRun, out: Path | str, threads: int) -> Job:
        place = str(out) if "://" in str(out) else str(Path(out).absolute())
        return cls(run.name, place, asdict(run.config), run.evaluation.as_dict(), threads)

    @property
    def run(self) -> PlannedRun:
        evaluation = {key: tuple(value) if isinstance(value, list) else value for key, value in self.evaluation.items()}
        return PlannedRun(self.name, RunConfig(**self.config), Evaluation(**evaluation), {})


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `error` is one sentence."""

    state: str
    error: str | None = None
    summary: Summary | None = None
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """For the way from a worker's process to the grid's."""
        if self.summary is None:
            return dict(vars(self))
        return {**vars(self), "summary": self.summary.to_json(), "corruptions": dict(self.summary.corruptions)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Outcome:
        fields = dict(value)
        corruptions, summary = fields.pop("corruptions", {}), fields.pop("summary", None)
        return cls(**fields, summary=Summary.from_json(summary, corruptions) if summary else None)


def run_job(job: Job) -> Outcome:
    """Train or resume, then evaluate; a run that another process works on is left alone."""
    started = time.monotonic()
    from dign.training.interrupts import Interrupted

    try:
        summary = _run_to_results(open_store(job.out), job)
        return Outcome(DONE, summary=summary, seconds=time.monotonic() - started)
    except Busy:
        return Outcome(BUSY)
    except Interrupted as stopped:
        return Outcome(INTERRUPTED, str(stopped))
    except UserError as error:
        return Outcome(FAILED, str(error), seconds=time.monotonic() - started)
    except Exception as error:
        return Outcome(FAILED, _unexpected(job, error), seconds=time.monotonic() - started)


class Busy(Exception):
    """Another process works on this run."""


@contextmanager
def hold_run(store: Store, name: str) -> Iterator[None]:
    """Lock a run from reading its state to writing its results, or raise `Busy`."""
    from dign.runs.folder import lock_run

    with ExitStack() as stack:
        try:
            stack.enter_context(lock_run(store.records(name)))
        except UserError as error:
            raise Busy from error
        yield


def _run_to_results(store: Store, job: Job) -> Summary | None:
    run = job.run
    with ExitStack() as stack:
        stack.enter_context(hold_run(store, run.name))
        before = read_state(store, run)
        if before.stage is Stage.DONE:
            return before.summary
        progress = stack.enter_context(_Progress.write_regularly(store.records(run.name)))
        folder = stack.enter_context(store.open_folder(run.name, every=run.config.checkpoint_seconds))
        progress.follow(folder)
        return _advance(folder, run, before, job.threads, progress)


def _advance(folder: Path, run: PlannedRun, before: State, threads: int, progress: _Progress) -> Summary:
    from dign.evaluation.subjects import evaluate_run
    from dign.parallel.devices import check_precision, pick_device
    from dign.runs.folder import load_run
    from dign.training.train import resume, train

    pin_threads(folder, threads)
    check_precision(run.evaluation.precision, pick_device(run.config.device))  # now, not after training
    if before.stage is Stage.NEW:
        _clear_setup_files(folder)
        train(run.config, folder, quiet=True)
    elif before.stage is Stage.BEGUN:
        resume(folder, quiet=True)
    trained = load_run(folder)
    progress.enter("evaluating")
    results = evaluate_run(
        trained,
        conditions_of(trained, run.evaluation),
        split=run.evaluation.split,
        device=run.config.device,
        batch_size=run.evaluation.batch_size,
        precision=run.evaluation.precision,
        temperature=run.evaluation.temperature,
        images=run.evaluation.images,
        keep_earlier=False,  # the runs of a grid are compared: each has the grid's conditions and no others
        progress=progress.at,
    )
    return results.summary


def conditions_of(run: Any, evaluation: Evaluation) -> Any:
    """What `evaluate_run` takes: corruptions made on the fly, or a benchmark's folder."""
    from dign.evaluation.conditions import Conditions, benchmark_for

    if evaluation.benchmark:
        return benchmark_for(run.data(), evaluation.benchmark, evaluation.only, evaluation.severity)
    return Conditions(
        corruptions=evaluation.corruptions,
        severities=evaluation.severity,
        profile=evaluation.profile,
        seed=evaluation.seed,
        jpeg=evaluation.jpeg,
    )


def pin_threads(folder: Path, threads: int) -> int:
    """Use the number of threads that the run was started with: on a CPU the weights depend on it."""
    import torch

    with suppress(OSError, ValueError, KeyError, TypeError):
        threads = max(1, int(read_json(folder / "run.json")["machine"]["threads"]))
    torch.set_num_threads(threads)
    return threads


def _clear_setup_files(folder: Path) -> None:
    """Remove what a process left that was killed while it created the folder; anything else stays and is an error."""
    from dign.runs.folder import SETUP_FILES

    if folder.is_dir() and {path.name for path in folder.iterdir()} <= SETUP_FILES:
        shutil.rmtree(folder)


def _unexpected(job: Job, error: Exception) -> str:
    """One sentence for an unexpected error; its traceback goes into the log."""
    store = open_store(job.out)
    log = store.records(job.name) / "log.txt"
    with suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "a", encoding="utf-8") as file:
            file.write("".join(traceback.format_exception(error)))
    first = (str(error).strip().splitlines() or [""])[0]
    where = f" (details: {log})" if isinstance(store, LocalStore) else ""
    return f"{type(error).__name__}: {first}{where}"


class _Progress:
    """Writes `progress.json` for the view: the stage of the run and the fraction of it that is done."""

    def __init__(self, records: Path) -> None:
        self.path = records / "progress.json"
        self.stage, self.fraction, self.folder = "starting", 0.0, None

    @classmethod
    @contextmanager
    def write_regularly(cls, records: Path) -> Iterator[_Progress]:
        """Write the file every second while the job runs."""
        progress, stop = cls(records), Event()

        def work() -> None:
            while True:
                progress.write()
                if stop.wait(1.0):
                    return

        thread = Thread(target=work, daemon=True)
        thread.start()
        try:
            yield progress
        finally:
            stop.set()
            thread.join()

    def follow(self, folder: Path) -> None:
        """Take the progress of training from the run folder's records."""
        self.folder = folder
        self.enter("training")

    def enter(self, stage: str) -> None:
        self.stage, self.fraction = stage, 0.0

    def at(self, done: int, total: int) -> None:
        self.fraction = done / total

    def write(self) -> None:
        if self.stage == "training":
            self.fraction = read_training_fraction(self.folder)
        with suppress(OSError):
            where = {"pid": os.getpid(), "host": platform.node()}
            done = {"stage": self.stage, "fraction": round(self.fraction, 4), "time": time.time()}
            write_json(self.path, {**done, **where})


def read_training_fraction(folder: Path) -> float:
    """The fraction of a run's training that is done, from its `metrics.jsonl`."""
    from dign.runs.folder import load_run

    with suppress(OSError, ValueError, KeyError, IndexError, UserError):
        run = load_run(folder)
        images = run.info["training_images"]
        batch_size = min(run.config.batch_size, images)
        last = (folder / "metrics.jsonl").read_text(encoding="utf-8").strip().splitlines()[-1]
        return min(1.0, json.loads(last)["step"] / (run.config.epochs * (images // batch_size)))
    return 0.0
