"""What the forms of `dign evaluate` share: opening the model of --model, and a progress bar."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import click

from dign.cli.messages import say, say_on
from dign.cli.usage_errors import name_options

if TYPE_CHECKING:
    from rich.console import Console

    from dign.data.dataset import DataSet
    from dign.evaluation.subjects import Subject
    from dign.parallel.team import Team
    from dign.runs.other_data import RunData

Follower = Callable[[int, int], None]


class Outcome(NamedTuple):
    """What was found about one model.

    Attributes:
        line: For the terminal.
        entry: For --json.
        table: For standard output, where this is the only model; may be empty.
    """

    line: str
    entry: dict[str, Any]
    table: str = ""


Measurement = Callable[[tuple[str, ...], dict[str, Any], "Console", "Team"], Iterator[Outcome]]
Result = TypeVar("Result", bound="Saved")


class Saved(Protocol):
    """What a measurement of one model gives."""

    def to_json(self) -> dict[str, Any]:
        """The entry for --json."""


SURE, LONG = 15.0, 600.0
"""Seconds after which the time left is known, and of time left from which on it is worth a word."""
OF_PICTURES = ("fit", "crop_fraction", "interpolation")
"""Options about pictures of any size, which are brought to one."""
OF_MODEL = ("weights", "trust", "mean", "std", *OF_PICTURES)
"""Options about a model that runs and hub folders know by themselves."""


def open_model(options: dict[str, Any], console: Console, team: Team) -> tuple[Subject, RunData, Path]:
    """The model of --model, the images of --data, and the file for the results; shows how images are prepared."""
    from dign.core.errors import UserError
    from dign.runs.foreign.opening import is_entry

    if options["data"] is None:
        raise UserError("--model needs images: name them with --data, as in --data cifar10.")
    out = results_place(options)
    if is_entry(options["model"]):
        sys.path.insert(0, os.getcwd())  # for all that the user's module imports, also later; other models run no code
    with team.all_or_none():
        found, subject, notes = _open_subject(options)
    for note in notes:
        say_on(console, name_options(note, click.get_current_context().command))
    if options.get("temperature") and subject.find_seen is None and team.is_rank_zero:
        _warn_of_unknown_training(subject)
    if skipped := found.describe_skipped():
        say_on(console, skipped)
    return subject, found, out


def _warn_of_unknown_training(subject: Subject) -> None:
    """Warn, also with --quiet, of a temperature that may be wrong."""
    from dign.evaluation.subjects import describe_unknown_training

    warning = name_options(describe_unknown_training(subject), click.get_current_context().command)
    say(f"dign: warning: {warning}")


def results_place(options: dict[str, Any]) -> Path:
    """The results file of a model that has no run folder: --out, or the file in that folder."""
    from dign.evaluation.results import RESULTS_FILE

    out = Path(options["out"] or RESULTS_FILE)
    return out if out.suffix == ".json" else out / RESULTS_FILE


def open_subjects(
    runs: tuple[str, ...], options: dict[str, Any], console: Console, team: Team
) -> Iterator[tuple[Subject, DataSet, Path]]:
    """The runs, or the model of --model: each with its images and the folder that its results go to."""
    from dign.evaluation.subjects import open_run
    from dign.runs.folder import load_run

    if options["model"]:
        subject, found, out = open_model(options, console, team)
        yield subject, found.data, out.parent
        return
    with team.all_or_none():
        opened = [load_run(path) for path in runs]
    for run in opened:
        subject, found = open_run(run, options["data"], skip_unreadable=options["skip_unreadable"], team=team)
        yield subject, found.data, run.path if found.is_own else _folder_for(run.path, options["data"], console, team)


def _folder_for(run: Path, data: str, console: Console, team: Team) -> Path:
    """Where measurements of a run on other images go: `on-NAME` in its folder, which reports leave alone."""
    from dign.data.names import hide_folder_path

    folder = run / f"on-{re.sub(r'[^A-Za-z0-9.]+', '-', hide_folder_path(data)).strip('-')}"
    with team.all_or_none():
        if team.is_rank_zero:
            folder.mkdir(exist_ok=True)
    say_on(console, f"These are other images than those of {run.name}: results go to {folder}.")
    return folder


def measure_each(
    runs: tuple[str, ...],
    options: dict[str, Any],
    console: Console,
    team: Team,
    title: str,
    measure: Callable[..., Result],
    save: Callable[[Path, Result], Path],
    describe: Callable[[str, Result], str],
) -> Iterator[Outcome]:
    """Measure the runs, or the model of --model, and save what was found in the folder of each."""
    common = {key: options[key] for key in ("split", "device")}
    for subject, data, folder in open_subjects(runs, options, console, team):
        with show_progress(console, f"{title} {subject.about.name}") as follow:
            result = measure(subject, data, team=team, progress=follow, **common)
        with team.all_or_none():
            if team.is_rank_zero:
                save(folder, result)
        name = subject.about.name
        yield Outcome(describe(name, result), {"name": name, **result.to_json()})


def _open_subject(options: dict[str, Any]) -> tuple[RunData, Subject, list[str]]:
    """The images, the model, and how images are prepared for it."""
    from dign.core.errors import UserError
    from dign.data import load
    from dign.data.framing import Framing
    from dign.data.names import split_prefix
    from dign.evaluation.foreign_model import describe_foreign, foreign_subject
    from dign.models.preprocessing import Preprocessing
    from dign.runs.foreign import open_model as open_foreign
    from dign.runs.hub_config import HUB_PREFIX
    from dign.runs.other_data import RunData

    entry, skip = options["model"], {"skip_unreadable": options["skip_unreadable"]}
    if entry.startswith(HUB_PREFIX):
        for option in OF_MODEL:
            if options[option] not in (None, False):
                raise UserError(f"{entry} has weights and settings of its own: leave out --{option.replace('_', '-')}.")
        return _open_hub_folder(options)
    for option in OF_PICTURES:
        if options[option] is not None and not split_prefix(options["data"])[0]:
            raise UserError(
                f"--{option.replace('_', '-')} is for pictures of any size, and {options['data']} has images of one: "
                "leave it out."
            )
    given = Preprocessing(
        options["size"],
        _numbers("mean", options),
        _numbers("std", options),
        *(options[name] for name in OF_PICTURES),
    )
    model = open_foreign(entry, weights=options["weights"], preprocessing=given, trust=options["trust"])
    wanted = model.preprocessing
    framing = Framing(wanted.fit or "crop", wanted.crop_fraction or 1.0, wanted.interpolation or "bicubic")
    data = load(options["data"], size=wanted.size, framing=framing, **skip)
    return RunData(data), foreign_subject(model, entry, data, options["label"], framing), describe_foreign(model, data)


def _open_hub_folder(options: dict[str, Any]) -> tuple[RunData, Subject, list[str]]:
    """The images, without those that the model was trained or calibrated on, and the model."""
    from dign.data import load
    from dign.data.framing import Framing
    from dign.evaluation.foreign_model import hub_subject
    from dign.runs.held_out import leave_out_seen
    from dign.runs.hub_config import hub_folder, read_hub_config
    from dign.runs.other_data import RunData

    folder = hub_folder(options["model"])
    framing = Framing(**read_hub_config(folder)["framing"])
    skip = options["skip_unreadable"]
    data = load(options["data"], size=options["size"], framing=framing, skip_unreadable=skip)
    subject = hub_subject(options["model"], data, options["label"])
    data, left_out = leave_out_seen(folder, data, options["split"])
    notes = [f"{left_out} images are left out, since the model was trained or calibrated on them."] if left_out else []
    return RunData(data, left_out or None), subject, notes


def _numbers(name: str, options: dict[str, Any]) -> tuple[float, ...] | None:
    from dign.core.errors import UserError

    if options[name] is None:
        return None
    try:
        values = tuple(map(float, options[name].split(",")))
    except ValueError:
        values = ()
    if len(values) != 3 or (name == "std" and min(values) <= 0):
        raise UserError(f"invalid --{name} '{options[name]}': expected three numbers, e.g. 0.485,0.456,0.406")
    return values


@contextmanager
def show_progress(console: Console, title: str, *, all_images: bool = False) -> Iterator[Follower]:
    """A progress bar in a terminal; the follower is told what is done, and of how much.

    With `all_images` a long measurement is told, once, that fewer would do.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from dign.training.cost import describe_duration

    columns = (TextColumn("[bold]{task.description}"), BarColumn(), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(title, total=None)
        started, told = time.monotonic(), not all_images

        def follow(done: int, total: int) -> None:
            nonlocal told
            progress.update(task, completed=done, total=total)
            passed = time.monotonic() - started
            if not told and done and passed > SURE:
                told = True
                left = passed * (total - done) / done
                if left > LONG:
                    say_on(
                        console,
                        f"{total - done} predictions take about {describe_duration(left)} more: `--images 300` "
                        "measures 300 images, evenly spaced, `--severity 3` one severity.",
                    )

        yield follow
