"""Experiment trackers behind one small interface; nothing leaves the machine unless it is configured to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from dign.core.errors import UserError, summarize_error
from dign.core.files import read_json, write_json


class Tracker(Protocol):
    """Where a run's numbers go, besides `metrics.jsonl`."""

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Event files in RUN/tensorboard; a resumed run drops what came after its checkpoint."""

    def __init__(self, folder: Path, first: int, settings: Mapping[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(folder / "tensorboard", purge_step=first + 1)

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class MLflow:
    """A store in RUN/mlruns, or at MLFLOW_TRACKING_URI; a resumed run continues the same MLflow run."""

    def __init__(self, folder: Path, first: int, settings: Mapping[str, Any]) -> None:
        # MLflow refuses plain folders as stores without this.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        from mlflow.tracking import MlflowClient

        store = os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlruns").resolve().as_uri()
        self._client = MlflowClient(tracking_uri=store)
        self._run = get_or_create_id(folder, "mlflow", lambda: self._begin(folder, settings))

    def _begin(self, folder: Path, settings: Mapping[str, Any]) -> str:
        experiment = self._client.get_experiment_by_name("dign")
        number = experiment.experiment_id if experiment else self._client.create_experiment("dign")
        run: str = self._client.create_run(number, run_name=folder.resolve().name).info.run_id
        for name, value in settings.items():
            self._client.log_param(run, name, value)
        return run

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._client.log_metric(self._run, name, value, step=step)

    def close(self) -> None:
        self._client.set_terminated(self._run)


class WandB:
    """Weights & Biases, offline in RUN/wandb (`wandb sync` uploads it later) unless WANDB_MODE is set."""

    def __init__(self, folder: Path, first: int, settings: Mapping[str, Any]) -> None:
        import wandb

        self._run = wandb.init(
            project="dign",
            name=folder.resolve().name,
            id=get_or_create_id(folder, "wandb", lambda: os.urandom(6).hex()),
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


TRACKERS: dict[str, tuple[Callable[[Path, int, Mapping[str, Any]], Tracker], str]] = {
    "tensorboard": (TensorBoard, "torch.utils.tensorboard"),
    "mlflow": (MLflow, "mlflow"),
    "wandb": (WandB, "wandb"),
}
"""Name to tracker and the module that it needs, which is that of the extra dign[NAME]."""


def check_tracker(name: str) -> None:
    """Raise before a run starts if the tracker's library cannot be imported."""
    if name in TRACKERS:
        error = _import_error(name)
        if error:
            raise UserError(
                f"The tracker {name} needs a library that cannot be imported ({error}): pip install 'dign[{name}]'."
            )


def make_tracker(name: str, folder: Path, first: int, settings: Mapping[str, Any]) -> Tracker | None:
    """The tracker `name` for a run folder, from step `first` on; 'auto' is TensorBoard where that is installed."""
    if name == "none" or (name == "auto" and _import_error("tensorboard")):
        return None
    check_tracker(name)
    kind, _ = TRACKERS["tensorboard" if name == "auto" else name]
    try:
        return kind(folder, first, settings)
    except Exception as error:  # an address that is wrong, a server that is down, an account that is missing, ...
        reason = summarize_error(error).rstrip(".")
        raise UserError(
            f"The tracker {name} could not start ({reason}): fix that and resume the run, or choose another `track`."
        ) from error


def _import_error(name: str) -> str | None:
    try:
        import_module(TRACKERS[name][1])
    except (ImportError, RuntimeError, AttributeError) as error:
        return str(error)
    return None


def get_or_create_id(folder: Path, key: str, make: Callable[[], str]) -> str:
    """The id of a run in its tracker, which resuming keeps: read from `tracking.json` in the folder, or created."""
    path, known = folder / "tracking.json", {}
    with suppress(OSError, ValueError):
        known = read_json(path)
    known = known if isinstance(known, dict) else {}
    if not isinstance(known.get(key), str):
        known[key] = make()
        write_json(path, known)
    return str(known[key])
