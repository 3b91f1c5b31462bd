"""Experiment trackers behind one small interface: numbers go in with a step, and nothing leaves the machine unasked."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from dign.core.errors import UserError, quote_path, summarize_error
from dign.core.files import read_json, write_json


class Tracker(Protocol):
    """Where a run's numbers go, besides `metrics.jsonl`."""

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in RUN/tensorboard; a resumed run forgets what came after its checkpoint."""

    def __init__(self, folder: Path, first: int, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(folder / "tensorboard", purge_step=first + 1)

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class MLflow:
    """A store in RUN/mlruns, or wherever MLFLOW_TRACKING_URI says; a resumed run goes on in the same MLflow run."""

    def __init__(self, folder: Path, first: int, settings: Mapping[str, Any]) -> None:
        # MLflow refuses stores that are plain folders unless told that they are meant: here one is.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient

        store = os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlruns").resolve().as_uri()
        self._client = MlflowClient(tracking_uri=store)
        self._run = remembered(folder, "mlflow", lambda: self._begin(folder, settings))

    def _begin(self, folder: Path, settings: Mapping[str, Any]) -> str:
        experiment = self._client.get_experiment_by_name("dign")
        number = experiment.experiment_id if experiment else self._client.create_experiment("dign")
        run = self._client.create_run(number, run_name=folder.resolve().name).info.run_id
        for name, value in settings.items():
            self._client.log_param(run, name, value)
        return run

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._client.log_metric(self._run, name, value, step=step)

    def close(self) -> None:
        self._client.set_terminated(self._run)


class WandB:
    """Weights & Biases, offline in RUN/wandb (`wandb sync` uploads it later) unless WANDB_MODE says otherwise."""

    def __init__(self, folder: Path, first: int, settings: Mapping[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project="dign",
            name=folder.resolve().name,
            id=remembered(folder, "wandb", lambda: os.urandom(6).hex()),
            resume="allow",
            dir=str(folder),
            mode=os.environ.get("WANDB_MODE", "offline"),
            config=dict(settings),
            settings=wandb.Settings(silent=True, console="off"),
        )

    def log(self, values: Mapping[str, float], step: int) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


TRACKERS: dict[str, tuple[type[Tracker], str]] = {
    "tensorboard": (TensorBoard, "torch.utils.tensorboard"),
    "mlflow": (MLflow, "mlflow"),
    "wandb": (WandB, "wandb"),
}
"""Name to tracker and the module that it needs, which is that of the extra dign[NAME]."""


def check_tracker(name: str) -> None:
    """Say so before a run begins if the tracker that was asked for cannot be had."""
    if name in TRACKERS:
        error = _why_not(name)
        if error:
            raise UserError(
                f"--track {name} needs a library that cannot be imported ({error}): pip install 'dign[{name}]'."
            )


def make_tracker(name: str, folder: Path, first: int, settings: Mapping[str, Any]) -> Tracker | None:
    """The tracker `name` for a run folder, from step `first` on; 'auto' is TensorBoard where that is installed."""
    if name == "none" or (name == "auto" and _why_not("tensorboard")):
        return None
    check_tracker(name)
    kind, _ = TRACKERS["tensorboard" if name == "auto" else name]
    try:
        return kind(folder, first, settings)
    except Exception as error:  # an address that is wrong, a server that is down, an account that is missing, ...
        reason = summarize_error(error).rstrip(".")
        raise UserError(
            f"--track {name} could not begin ({reason}): mend that, then go on with "
            f"`dign train --resume {quote_path(folder)}`."
        ) from error


def _why_not(name: str) -> str | None:
    try:
        import_module(TRACKERS[name][1])
    except (ImportError, RuntimeError, AttributeError) as error:
        return str(error)
    return None


def remembered(folder: Path, key: str, make: Callable[[], str]) -> str:
    """An identity that a run keeps when it is resumed: read from `tracking.json` in its folder, or made and kept."""
    path, known = folder / "tracking.json", {}
    with suppress(OSError, ValueError):
        known = read_json(path)
    known = known if isinstance(known, dict) else {}
    if not isinstance(known.get(key), str):
        known[key] = make()
        write_json(path, known)
    return known[key]
