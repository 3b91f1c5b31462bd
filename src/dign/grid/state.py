"""The state of a run of a grid, judged by the files in its folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum

from dign.core.errors import UserError
from dign.evaluation.result_parts import Summary
from dign.evaluation.results import RESULTS_FILE, Results
from dign.grid.plan import PlannedRun
from dign.grid.storage import Store
from dign.runs.config import RunConfig
from dign.runs.toml_files import parse_toml

FREE = ("device", "compile", "winograd", "checkpoint_seconds", "settings")
"""Fields in which a run may differ from its plan: they change rounding at most (`settings` are compared as methods)."""


class Stage(StrEnum):
    NEW = "new"
    BEGUN = "begun"
    TRAINED = "trained"
    DONE = "done"


@dataclass(frozen=True)
class State:
    """A run's stage, and its results' summary once it is done."""

    stage: Stage
    summary: Summary | None = None


def read_state(store: Store, run: PlannedRun) -> State:
    """Read the state of a run; one that was started with other settings is refused."""
    text = store.read(run.name, "config.toml")
    if text is None:
        return State(Stage.NEW)
    _check_same(run, text, f"{store.location}/{run.name}")
    if not store.exists(run.name, "model.safetensors"):
        return State(Stage.BEGUN)
    results = _results(store, run.name)
    if results is None or not run.evaluation.describes(results):
        return State(Stage.TRAINED)
    return State(Stage.DONE, results.summary)


def _results(store: Store, name: str) -> Results | None:
    """The results; None where there are none or they are broken, so that they are made again."""
    try:
        return Results.parse(store.read(name, RESULTS_FILE) or "null")
    except ValueError:
        return None


def _check_same(run: PlannedRun, text: str, place: str) -> None:
    from dign.runs.folder import make_run_method

    try:
        found = RunConfig.from_mapping(parse_toml(text, "it"))
        same_method = make_run_method(found) == make_run_method(run.config)
    except UserError as error:
        raise UserError(f"{place}/config.toml cannot be used ({error}): move that folder away.") from error
    ours, theirs = asdict(run.config), asdict(found)
    ours["epochs"] = ours["epochs"] or theirs["epochs"]  # 0: as many as the number of images asks for
    keys = [key for key in ours if key not in FREE and ours[key] != theirs[key]]
    if keys or not same_method:
        what = f"{keys[0]} {theirs[keys[0]]}, not {ours[keys[0]]}" if keys else "other settings of the method"
        raise UserError(f"{place} holds a run with {what}: choose another `out`, or move that folder away.")
