"""What the forms of `dign evaluate` share: opening the model of --model, and a progress bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from dign.data.dataset import DataSet
    from dign.evaluation.subjects import Subject
    from dign.parallel.team import Team

Follower = Callable[[int, int], None]


def open_model(options: dict[str, Any], console: Console, team: Team) -> tuple[Subject, DataSet, Path]:
    """The model of --model, the data of --data, and the file for the results."""
    from dign.core.errors import UserError
    from dign.data import load
    from dign.evaluation.foreign_model import foreign_subject
    from dign.evaluation.results import RESULTS_FILE
    from dign.runs.hub_config import HUB_PREFIX

    if options["data"] is None:
        raise UserError("--model needs images: name them with --data, as in --data cifar10.")
    if options["weights"] is not None and options["model"].startswith(HUB_PREFIX):
        raise UserError(f"{options['model']} has weights of its own: leave out --weights.")
    out = Path(options["out"] or RESULTS_FILE)
    out = out if out.suffix == ".json" else out / RESULTS_FILE
    sys.path.insert(0, os.getcwd())  # for all that the user's module imports, also later
    with team.all_or_none():
        data = load(options["data"], size=options["size"], skip_unreadable=options["skip_unreadable"])
        subject = foreign_subject(options["model"], options["weights"], data, options["label"])
    if data.skipped:
        console.print(f"{len(data.skipped)} images are left out, since they cannot be read.", soft_wrap=True)
    return subject, data, out


@contextmanager
def show_progress(console: Console, title: str) -> Iterator[Follower]:
    """A progress bar in a terminal; the follower is told what is done, and of how much."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
