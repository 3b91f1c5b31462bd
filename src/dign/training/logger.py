"""What a user and a file see of a run: a progress bar, `metrics.jsonl`, and an experiment tracker."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task
from rich.text import Text

from dign.core.errors import UserError, summarize_error
from dign.core.files import parse_json, read_limited, write_text
from dign.core.text import wrap_words
from dign.training.trackers import Tracker

BAR_WIDTH = 10


class TrainingLogger:
    """Logs a run from step `first` to step `total`, which are `epochs` passes over the training images.

    Without a terminal one line per validation replaces the bar. `work` maps the fraction of steps done to the fraction
    of work done, which the bar and the time left follow: a run's first steps may be the cheaper ones. `translate` is
    applied to the messages (the command line writes options where the library names parameters).
    """

    def __init__(
        self,
        folder: Path,
        *,
        total: int,
        first: int,
        epochs: int,
        images_per_step: int,
        title: str,
        quiet: bool,
        work: Callable[[float], float] = lambda fraction: fraction,
        tracker: Tracker | None = None,
        translate: Callable[[str], str] = str,
    ) -> None:
        self.total, self.epochs = total, epochs
        self.images_per_step = images_per_step
        self._console = Console(stderr=True, quiet=quiet)
        self._progress = Progress(
            BarColumn(bar_width=BAR_WIDTH),
            StatusColumn(self._console),
            console=self._console,
            disable=quiet or not self._console.is_terminal,
            speed_estimate_period=600,  # seconds: steps of a large model may be minutes apart
        )
        self._work, self._translate = work, translate
        self._task = self._progress.add_task(title, total=1.0, epoch=self._epoch(first))
        self._path = folder / "metrics.jsonl"
        self._validation = _drop_records_after(self._path, first)
        self._progress.update(self._task, completed=work(first / total), validation=self._validation)
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

    def advance(self, step: int) -> None:
        """Move the bar; `step` steps are done. Reads nothing from the device."""
        fields: dict[str, Any] = {"epoch": self._epoch(step)}
        if step - self._clock_step >= 2:  # the first step may be slow
            fields["speed"] = self._images_per_second(step)
        self._progress.update(self._task, completed=self._work(step / self.total), **fields)

    def log_step(self, step: int, epoch: int, loss: float, terms: dict[str, float], lr: float) -> None:
        """Record the mean loss since the last call; `step` steps and `epoch` epochs are done."""
        speed = self._images_per_second(step)
        self._clock, self._clock_step = time.perf_counter(), step
        self._write(
            {"step": step, "epoch": epoch, "loss": loss, "terms": terms, "lr": lr, "images_per_second": round(speed, 1)}
        )
        self._progress.update(self._task, loss=loss, terms=terms, speed=speed)

    def log_validation(self, step: int, epoch: int, scores: dict[str, float]) -> None:
        """Record the accuracy and loss on the validation images."""
        self._write({"step": step, "epoch": epoch, "validation": scores})
        self._progress.update(self._task, validation=scores["accuracy"])
        if not self._console.is_terminal:
            accuracy, loss = scores["accuracy"], scores["loss"]
            self.log_message(f"epoch {epoch}/{self.epochs}: validation accuracy {accuracy:.2f} %, loss {loss:.3f}")

    def restart_clock(self) -> None:
        """Leave out of images/s what is not training."""
        self._clock = time.perf_counter()

    def log_message(self, text: str) -> None:
        """Show a message above the bar."""
        shown = self._translate(text)
        if self._console.is_terminal:
            shown = wrap_words(shown, self._console.width)
        self._console.print(shown, highlight=False, markup=False, soft_wrap=True)

    def _epoch(self, step: int) -> str:
        """The epoch that is being trained."""
        return f"{min(step * self.epochs // self.total + 1, self.epochs)}/{self.epochs}"

    def _images_per_second(self, step: int) -> float:
        elapsed = time.perf_counter() - self._clock
        return (step - self._clock_step) * self.images_per_step / max(elapsed, 1e-9)

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        self._track(lambda tracker: tracker.log(flatten_record(record), record["step"]))

    def _track(self, action: Callable[[Tracker], None]) -> None:
        """If a tracker fails (its server may be gone), say so once and continue without it."""
        if self._tracker is None:
            return
        try:
            action(self._tracker)
        except Exception as error:
            self._tracker = None
            self.log_message(f"The tracker failed ({summarize_error(error)}): only metrics.jsonl is written from here.")


class NullLogger(TrainingLogger):
    """The logger of every process but rank zero."""

    def __init__(self) -> None:
        self._progress = Progress(disable=True)

    def __exit__(self, *exception: object) -> None:
        pass

    def advance(self, step: int) -> None:
        pass

    def log_step(self, step: int, epoch: int, loss: float, terms: dict[str, float], lr: float) -> None:
        pass

    def log_validation(self, step: int, epoch: int, scores: dict[str, float]) -> None:
        pass

    def restart_clock(self) -> None:
        pass

    def log_message(self, text: str) -> None:
        pass


class StatusColumn(ProgressColumn):
    """Everything beside the bar: as much of it as fits the terminal, and always the time left."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console

    def render(self, task: Task) -> Text:
        room = self._console.width - BAR_WIDTH - 2
        return Text(fit_status(describe_status(task), room), no_wrap=True, overflow="ellipsis")


def describe_status(task: Task) -> list[tuple[int, str]]:
    """The parts of the status line, in order, each with its importance: 0 stays longest."""
    fields = task.fields
    parts = [(5, task.description), (1, f"epoch {fields['epoch']}")]
    if "loss" in fields:
        parts.append((2, f"loss {fields['loss']:.3f}"))
    if len(fields.get("terms", ())) > 1:
        parts.append((6, "(" + ", ".join(f"{name} {value:.3f}" for name, value in fields["terms"].items()) + ")"))
    if fields.get("validation") is not None:
        parts.append((3, f"val {fields['validation']:.1f} %"))
    if "speed" in fields:
        parts.append((4, f"{fields['speed']:.0f} images/s"))
    if task.finished:
        return [*parts, (0, f"in {format_clock(task.finished_time or 0)}")]
    return [*parts, (0, "estimating" if task.time_remaining is None else f"{format_clock(task.time_remaining)} left")]


def fit_status(parts: Sequence[tuple[int, str]], room: int) -> str:
    """The parts that fit into `room` characters: the least important are left out first.

    >>> fit_status([(2, "a long title"), (1, "epoch 1/2"), (0, "0:05 left")], 20)
    'epoch 1/2  0:05 left'
    """
    kept = list(parts)
    while len(kept) > 1 and len("  ".join(text for _, text in kept)) > room:
        kept.remove(max(kept, key=lambda part: part[0]))
    return "  ".join(text for _, text in kept)


def format_clock(seconds: float) -> str:
    """Hours, minutes and seconds.

    >>> [format_clock(seconds) for seconds in (5, 65, 3665, 200_000)]
    ['0:05', '1:05', '1:01:05', '2 d 7 h']
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def flatten_record(record: dict[str, Any]) -> dict[str, float]:
    """The numbers of a record by name; those of a validation are prefixed."""
    found = {**record, **record.get("terms", {})}
    found |= {f"validation/{name}": value for name, value in record.get("validation", {}).items()}
    return {name: value for name, value in found.items() if isinstance(value, float)}


MAX_METRICS_SIZE = 2**30


def _drop_records_after(path: Path, first: int) -> float | None:
    """Forget what was recorded after a checkpoint, and a half-written line; returns the last validation accuracy."""
    if not path.exists():
        return None
    kept, accuracy = [], None
    try:
        text = read_limited(path, MAX_METRICS_SIZE).decode(errors="replace")
    except ValueError as error:
        raise UserError(f"{path} cannot be used ({error}): the run folder is damaged.") from error
    for line in text.splitlines():
        try:
            record = parse_json(line)
            if record["step"] > first:
                continue
            kept.append(line)
            accuracy = float(record["validation"]["accuracy"]) if "validation" in record else accuracy
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    write_text(path, "".join(f"{line}\n" for line in kept))
    return accuracy
