"""Start a training, or resume one: everything is checked before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dign.core.errors import UserError
from dign.data.dataset import DataSet
from dign.parallel.devices import check_compiler
from dign.parallel.fabric import make_fabric
from dign.parallel.launching import torchrun_job_id
from dign.parallel.team import Team
from dign.runs.config import RunConfig
from dign.runs.epochs import fill_epochs
from dign.runs.folder import Run, check_new_folder, load_run, lock_run, was_started_by
from dign.training.loop import TrainingLoop, Translate, remove_leftovers
from dign.training.setup import create_folder, global_batch_size, prepare


def train(
    config: RunConfig | Mapping[str, Any], out: Path | str, *, quiet: bool = False, translate: Translate = str
) -> Run:
    """Train a model into a new run folder.

    If torchrun restarts its processes because one has died, they resume the run that they had started.

    Args:
        config: The settings of the run: a `RunConfig`, or a mapping that `RunConfig.from_mapping` takes.
        out: The folder to create. It gets `config.toml`, `run.json`, `metrics.jsonl` and `model.safetensors`.
        quiet: Show no progress bar and no notes.
        translate: Applied to notes before they are shown.

    Returns:
        The finished run; `dign.load_model(out)` loads its classifier.

    Raises:
        UserError: A setting is invalid, `out` is not empty, or the loss is no longer finite (`Diverged`).
        Interrupted: Ctrl-C or SIGTERM stopped the training; `resume` continues it from its checkpoint.

    Example:
        >>> import tempfile
        >>> settings = {"data": "digits", "method": "standard", "epochs": 1, "size": 8, "batch_size": 256}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = train(settings, f"{folder}/run", quiet=True)
        ...     run.finished, len(run.classes)
        (True, 10)
    """
    config = config if isinstance(config, RunConfig) else RunConfig.from_mapping(config)
    fabric = make_fabric(config.device, config.precision, config.devices, config.nodes, patience=config.patience)
    team = Team.from_fabric(fabric, config.patience)
    with team.all_or_none():  # every setting is checked before anything is written
        restarted = was_started_by(torchrun_job_id(), config, out)
        if team.is_rank_zero and not restarted:
            check_new_folder(out)
        if config.compile:
            check_compiler(fabric.device)
        data, start = prepare(config, team)
        config = fill_epochs(config, len(data.train))
    if team.gather(restarted)[0]:  # the job's id differs between machines; the run stores that of rank zero
        return resume(out, quiet=quiet, translate=translate)
    with team.enter_on_rank_zero(lock_run(out)), team.report_dead_peer(f"resume the run in {out}"):
        with team.all_or_none():
            if team.is_rank_zero:
                create_folder(config, out, data, start, team)
        return TrainingLoop(load_run(out), data, fabric, team, start).fit(quiet=quiet, translate=translate)


def resume(
    path: Path | str,
    *,
    quiet: bool = False,
    devices: int | None = None,
    nodes: int | None = None,
    translate: Translate = str,
) -> Run:
    """Resume a run from its last checkpoint; the result equals that of an uninterrupted run.

    Args:
        path: The run's folder. A finished run is returned as it is.
        quiet: Show no progress bar and no notes.
        devices: Processes on each machine, if not those of the run's configuration.
        nodes: Machines, likewise.
        translate: Applied to notes before they are shown.

    Returns:
        The finished run.

    Raises:
        UserError: `path` is not a run folder, or its training images have changed.
        Interrupted: As for `train`.

    Example:
        >>> import tempfile
        >>> settings = {"data": "digits", "method": "standard", "epochs": 1, "size": 8, "batch_size": 256}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     run = train(settings, f"{folder}/run", quiet=True)
        ...     resume(f"{folder}/run", quiet=True).finished
        True
    """
    run = load_run(path)
    if run.finished:
        remove_leftovers(run)
        return run
    config = replace(run.config, devices=devices or run.config.devices, nodes=nodes or run.config.nodes)
    fabric = make_fabric(config.device, config.precision, config.devices, config.nodes, patience=config.patience)
    team = Team.from_fabric(fabric, config.patience)
    with team.all_or_none():
        if config.compile:
            check_compiler(fabric.device)
        data = run.data()
        team.check_divides(global_batch_size(config, data), config.accumulate)
        _check_same_images(run, data)
    with team.enter_on_rank_zero(lock_run(path)), team.report_dead_peer(f"resume the run in {path}"):
        run = load_run(path)  # another process may have finished it before this one got the lock
        return run if run.finished else TrainingLoop(run, data, fabric, team).fit(quiet=quiet, translate=translate)


def _check_same_images(run: Run, data: DataSet) -> None:
    source, before = run.config.data, run.info.get("training_images")
    if not run.trained_on(data.train):
        raise UserError(f"The training images of {source} have changed since {run.path} was started: start a new run.")
    if len(data.train) != before:
        raise UserError(
            f"{run.path} was started with {before} training images, but {source} now has {len(data.train)}: put the "
            "data back as it was, or start a new run."
        )
