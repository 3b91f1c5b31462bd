"""Read run folders: files are untrusted, and nothing broken is skipped silently."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from dign.core.errors import UserError, quote_path
from dign.core.files import MAX_JSON_SIZE, parse_json, read_limited
from dign.core.text import clean_text
from dign.evaluation.attack import read_attacks
from dign.evaluation.conclusion import is_of_calibrator
from dign.evaluation.examples import EXAMPLES_FILE
from dign.evaluation.results import RESULTS_FILE, Results
from dign.runs.calibrator import CALIBRATION_FILE, read_calibrator
from dign.runs.toml_files import parse_toml

RUN_FILES = (RESULTS_FILE, "config.toml", "run.json", "metrics.jsonl")
"""A folder that holds one of these is a run."""
MAX_DEPTH = 4


@dataclass(frozen=True)
class Run:
    """One run folder, read and checked: its results, and what else is in the folder."""

    folder: Path
    results: Results
    config: dict[str, Any] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    landscape: dict[str, Any] | None = None
    examples: dict[str, Any] | None = None
    attacks: list[dict[str, Any]] = field(default_factory=list)
    certificates: list[dict[str, Any]] = field(default_factory=list)
    outliers: list[dict[str, Any]] = field(default_factory=list)
    sequences: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        return self.results.run.name

    @property
    def title(self) -> str:
        return self.results.run.title

    @property
    def model(self) -> str:
        return self.results.run.model

    @property
    def data(self) -> str:
        return self.results.run.data

    @property
    def seed(self) -> int:
        return self.results.run.seed


def load_runs(paths: Iterable[Path | str]) -> tuple[list[Run], list[str]]:
    """The runs in `paths` (run folders, or folders that contain run folders) and warnings about what was skipped.

    A single broken run is an error; among several it is named in a warning.
    """
    folders = _unique(folder for path in paths for folder in find_run_folders(Path(path)))
    runs: list[Run] = []
    problems: list[str] = []
    for folder in folders:
        notes: list[str] = []
        try:
            runs.append(load_run(folder, notes))
        except UserError as error:
            problems.append(str(error))
        problems += notes
    if not runs:
        others = f" ({len(folders)} run folders were found, none of them usable.)" if len(folders) > 1 else ""
        raise UserError(problems[0] + others)
    return runs, problems


def find_run_folders(path: Path) -> list[Path]:
    """`path` itself if it is a run folder, else the run folders inside it, in the order of their names."""
    if not path.is_dir():
        raise UserError(f"There is no run folder '{clean_text(path)}': expected a folder that `dign train` made.")
    if any((path / name).is_file() for name in RUN_FILES):
        return [path]
    found: list[Path] = []
    for parent, children, files in os.walk(path, followlinks=True):  # a loop of links ends at MAX_DEPTH
        children[:] = sorted(child for child in children if not child.startswith("."))
        folder = Path(parent)
        if any(name in files for name in RUN_FILES):
            found.append(folder)
            children.clear()
        elif len(folder.relative_to(path).parts) >= MAX_DEPTH:
            children.clear()
    if not found:
        raise UserError(f"The folder '{clean_text(path)}' holds no run: none of its folders has a {RESULTS_FILE}.")
    return found


def load_run(folder: Path, notes: list[str] | None = None) -> Run:
    """Read one run folder; what is wrong with its optional files is added to `notes`."""
    notes = [] if notes is None else notes
    results = Results.load(folder)
    notes += _check_calibrator(folder, results)
    return Run(
        folder=folder,
        results=results,
        config=flatten(_optional(folder / "config.toml", partial(parse_toml, what="it"), notes, {})),
        details=_optional(folder / "run.json", _object, notes, {}),
        metrics=_optional(folder / "metrics.jsonl", _json_lines, notes, []),
        landscape=_optional(folder / "landscape.json", _object, notes, None),
        examples=_optional(folder / EXAMPLES_FILE, _object, notes, None),
        attacks=read_attacks(folder),
        certificates=_all(folder, "certificates-*.json", notes),
        outliers=_all(folder, "ood-*.json", notes),
        sequences=_optional(folder / "sequences.json", _object, notes, None),
    )


def _check_calibrator(folder: Path, results: Results) -> list[str]:
    """A note where the run was calibrated anew after it was measured."""
    if not (folder / CALIBRATION_FILE).is_file():
        return []
    try:
        if is_of_calibrator(results, read_calibrator(folder, len(results.classes))):
            return []
    except UserError as error:
        return [str(error)]
    name = clean_text(folder)
    return [
        f"{name} was calibrated anew after it was measured, and is shown as it was: `dign evaluate {quote_path(name)}` "
        "measures it as it is."
    ]


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _read_text(path: Path) -> str:
    return read_limited(path, MAX_JSON_SIZE).decode()


def _object(text: str) -> dict[str, Any]:
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    return value


def _json_lines(text: str) -> list[dict[str, Any]]:
    """Every complete record; the last line may be half written by a run that is still training."""
    lines = [line for line in text.splitlines() if line.strip()]
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_object(line))
        except ValueError as error:
            if number < len(lines):
                raise ValueError(f"line {number}: {error}") from error
    return records


def _optional(path: Path, parse: Any, notes: list[str], default: Any) -> Any:
    if not path.is_file():
        return default
    try:
        return parse(_read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"'{clean_text(path)}' cannot be read and is left out ({clean_text(error)}).")
        return default


def _all(folder: Path, pattern: str, notes: list[str]) -> list[dict[str, Any]]:
    found = [_optional(file, _object, notes, None) for file in sorted(folder.glob(pattern))]
    return [content for content in found if content is not None]


def _unique(folders: Iterable[Path]) -> list[Path]:
    return list({folder.resolve(): folder for folder in folders}.values())
