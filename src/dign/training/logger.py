"""What a person and a file see of a run: a progress bar, `metrics.jsonl`, and an experiment tracker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dign.core.errors import UserError, summarize_error
from dign.core.files import parse_json, read_limited, write_text
from dign.training.trackers import Tracker


class TrainingLogger:
    """Follows a run from step `first` of `total`. Without a terminal, one line per validation replaces the bar.

    `work` says what share of the work is done after a fraction of the steps: the bar and the time left go by it, since
    a run's first steps may be the cheaper ones.
    """

    def __init__(
        self,
        folder: Path,
        *,
        total: int,
        first: int,
        images_per_step: int,
        title: str,
        quiet: bool,
        work: Callable[[float], float] = lambda fraction: fraction,
        tracker: Tracker | None = None,
    ) -> None:
        self.total = total
        self.images_per_step = images_per_step
        self._console = Console(stderr=True, quiet=quiet)
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("[green]{task.fields[steps]}"),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
            speed_estimate_period=600,  # seconds: records of a large model may come minutes apart
        )
        self._work = work
        self._task = self._progress.add_task(title, total=1.0, **self._reached(first), news="")
        self._path = folder / "metrics.jsonl"
        _drop_records_from(self._path, first)
        self._file = open(self._path, "a", encoding="utf-8")  # noqa: SIM115 (closed in __exit__)
        self._tracker = tracker
        self._clock, self._clock_step = time.perf_counter(), first

    def __enter__(self) -> TrainingLogger:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
        self._file.close()
        self._track(lambda tracker: tracker.close())

    def trained(self, step: int, epoch: int, loss: float, terms: dict[str, float], lr: float) -> None:
        """Record the mean loss since the last call; `step` steps are done."""
        elapsed = time.perf_counter() - self._clock
        speed = (step - self._clock_step) * self.images_per_step / max(elapsed, 1e-9)
        self._clock, self._clock_step = time.perf_counter(), step
        self._write(
            {"step": step, "epoch": epoch, "loss": loss, "terms": terms, "lr": lr, "images_per_second": round(speed, 1)}
        )
        parts = " ".join(f"{name} {value:.3f}" for name, value in terms.items())
        self._progress.update(self._task, **self._reached(step), news=f"{parts}  {speed:.0f} images/s")

    def validated(self, step: int, epoch: int, scores: dict[str, float]) -> None:
        self._write({"step": step, "epoch": epoch, "validation": scores})
        if not self._console.is_terminal:
            self.say(f"epoch {epoch}: validation accuracy {scores['accuracy']:.2f} %, loss {scores['loss']:.3f}")

    def restart_clock(self) -> None:
        """Leave out of images/s what is not training."""
        self._clock = time.perf_counter()

    def say(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _reached(self, step: int) -> dict[str, Any]:
        return {"completed": self._work(step / self.total), "steps": f"{step}/{self.total}"}

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        self._track(lambda tracker: tracker.log(numbers_of(record), record["step"]))

    def _track(self, do: Callable[[Tracker], None]) -> None:
        """Whatever goes wrong with a tracker (its server may be gone) is said, and training goes on without it."""
        if self._tracker is None:
            return
        try:
            do(self._tracker)
        except Exception as error:
            self._tracker = None
            self.say(f"The tracker failed ({summarize_error(error)}): metrics.jsonl goes on alone.")


class NullLogger(TrainingLogger):
    """The logger of a process for which another one speaks."""

    def __init__(self) -> None:
        self._progress = Progress(disable=True)

    def __exit__(self, *exception: object) -> None:
        pass

    def trained(self, step: int, epoch: int, loss: float, terms: dict[str, float], lr: float) -> None:
        pass

    def validated(self, step: int, epoch: int, scores: dict[str, float]) -> None:
        pass

    def say(self, text: str) -> None:
        pass


def numbers_of(record: dict[str, Any]) -> dict[str, float]:
    """The numbers of a record by name; those of a validation are kept apart from those of training."""
    found = {**record, **record.get("terms", {})}
    found |= {f"validation/{name}": value for name, value in record.get("validation", {}).items()}
    return {name: value for name, value in found.items() if isinstance(value, float)}


LARGEST_RECORDS = 2**30


def _drop_records_from(path: Path, first: int) -> None:
    """A resumed run goes back to its checkpoint: forget what was recorded after it, and a half-written line."""
    if not path.exists():
        return
    kept = []
    try:
        text = read_limited(path, LARGEST_RECORDS).decode(errors="replace")
    except ValueError as error:
        raise UserError(f"{path} cannot be used ({error}): the run folder is damaged.") from error
    for line in text.splitlines():
        try:
            if parse_json(line)["step"] <= first:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    write_text(path, "".join(f"{line}\n" for line in kept))
