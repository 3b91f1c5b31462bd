"""How far a run of a grid is, judged by what lies in its folder."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from dign.core.errors import UserError
from dign.core.files import parse_json
from dign.grid.plan import PlannedRun
from dign.grid.storage import Store
from dign.runs.config import RunConfig, parse_toml

FREE = ("device", "compile", "winograd", "checkpoint_seconds", "settings")
"""In these a run may differ from its plan: they change the rounding at most (`settings` are compared as methods)."""


class Stage(StrEnum):
    NEW = "new"
    BEGUN = "begun"
    TRAINED = "trained"
    DONE = "done"


@dataclass(frozen=True)
class State:
    """A run's stage, and its results' summary once it is done."""

    stage: Stage
    summary: dict[str, Any] | None = None


def state_of(store: Store, run: PlannedRun) -> State:
    """Look at a run; one that was begun with other settings is refused."""
    text = store.read(run.name, "config.toml")
    if text is None:
        return State(Stage.NEW)
    _check_same(run, text, f"{store.location}/{run.name}")
    if not store.exists(run.name, "model.safetensors"):
        return State(Stage.BEGUN)
    results = _results(store, run.name)
    if results is None or not run.evaluation.describes(results):
        return State(Stage.TRAINED)
    return State(Stage.DONE, results.get("summary"))


def _results(store: Store, name: str) -> dict[str, Any] | None:
    """The results; None where there are none or they cannot be read, so that they are made again."""
    try:
        results = parse_json(store.read(name, "results.json") or "null")
    except (ValueError, UserError):
        return None
    return results if isinstance(results, dict) else None


def _check_same(run: PlannedRun, text: str, place: str) -> None:
    from dign.runs.folder import method_of

    try:
        found = RunConfig.from_mapping(parse_toml(text, "it"))
        same_method = method_of(found) == method_of(run.config)
    except UserError as error:
        raise UserError(f"{place}/config.toml cannot be used ({error}): move that folder away.") from error
    ours, theirs = asdict(run.config), asdict(found)
    keys = [key for key in ours if key not in FREE and ours[key] != theirs[key]]
    if keys or not same_method:
        what = f"{keys[0]} {theirs[keys[0]]}, not {ours[keys[0]]}" if keys else "other settings of the method"
        raise UserError(f"{place} holds a run with {what}: choose another --out, or move that folder away.")
