"""A grid file in, its runs out: every list means "each of these"."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, get_type_hints

from dign.core.errors import UserError, unknown_name
from dign.grid.evaluate_table import Evaluation
from dign.runs.config import RunConfig
from dign.runs.presets import PRESETS
from dign.runs.toml_files import read_toml

RUN_KEYS = (*(spec.name for spec in fields(RunConfig)), "preset")
GRID_KEYS = (*RUN_KEYS, "for", "evaluate", "threads")
CHOOSING = ("data", "model", "method")
"""What a `[for.NAME]` table is chosen by."""
MOST_RUNS = 10_000


@dataclass(frozen=True)
class PlannedRun:
    """One run of a grid: `axes` are the settings that the file gives as lists, with this run's values."""

    name: str
    config: RunConfig
    evaluation: Evaluation
    axes: dict[str, Any]

    @property
    def label(self) -> str:
        """The name without its seed."""
        return self.name.rpartition("-seed")[0]


@dataclass(frozen=True)
class Plan:
    runs: tuple[PlannedRun, ...]
    threads: int | None = None

    def select(self, patterns: Sequence[str]) -> Plan:
        """The runs whose names match one of the patterns: `*augmix*`, or simply a part of the name."""
        if not patterns:
            return self
        kept = tuple(run for run in self.runs if any(_matches(run.name, pattern) for pattern in patterns))
        if not kept:
            raise UserError(f"No run matches {' or '.join(patterns)}: they are called like {self.runs[0].name}.")
        return replace(self, runs=kept)


def _matches(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) if any(mark in pattern for mark in "*?[") else pattern in name


def read_plan(path: Path | str) -> Plan:
    """The runs that a grid file describes, in its order; an invalid one is an error here, before anything runs."""
    try:
        return make_plan(read_toml(path))
    except UserError as error:
        if str(path) in str(error):
            raise
        raise UserError(f"{path}: {error}") from error


def make_plan(values: Mapping[str, Any]) -> Plan:
    for key in values:
        if key not in GRID_KEYS:
            raise unknown_name("key in a grid file", key, GRID_KEYS)
    if "data" not in values:
        raise UserError('A grid needs data, as in data = ["cifar10"].')
    threads = values.get("threads")
    if threads is not None and (type(threads) is not int or threads < 1):
        raise UserError(f"threads must be a whole number of at least 1, not {threads!r}.")
    shared = {key: value for key, value in values.items() if key not in ("for", "evaluate", "threads")}
    special = _special_tables(values.get("for", {}))
    evaluation = _table(values.get("evaluate", {}), "evaluate")
    parts = [_part(shared, special, evaluation, chosen) for chosen in _choices(shared)]
    count = sum(part.count for part in parts)
    if count > MOST_RUNS:
        raise UserError(f"The grid has {count} runs, more than {MOST_RUNS}: shorten a list.")
    runs = [run for part in parts for run in part.runs()]
    _check_use(shared, special, runs)
    _check_names(runs)
    return Plan(tuple(runs), threads)


def _special_tables(value: Any) -> dict[str, dict[str, Any]]:
    tables = {name: _table(table, f"for.{name}") for name, table in _table(value, "for").items()}
    for name, table in tables.items():
        for key in table:
            if key in CHOOSING:
                raise UserError(f"[for.{name}] cannot set {key}: the table applies to runs that are chosen by it.")
            if key not in (*RUN_KEYS, "evaluate"):
                raise unknown_name(f"key in [for.{name}]", key, [*set(RUN_KEYS) - set(CHOOSING), "evaluate"])
    return tables


def _choices(shared: Mapping[str, Any]) -> list[dict[str, str]]:
    """Each combination of data set, model and method, in the order of the file's lists."""
    lists = {key: as_list(shared[key]) for key in CHOOSING if key in shared}
    for key, values in [*lists.items(), ("preset", as_list(shared.get("preset", "paper")))]:
        if not all(isinstance(value, str) for value in values):
            raise UserError(f"{key} must be a name or a list of names, not {shared[key]!r}.")
    return [dict(zip(lists, values, strict=True)) for values in product(*lists.values())]


def as_list(value: Any) -> list[Any]:
    if isinstance(value, list) and not value:
        raise UserError("A list in a grid file must name at least one value.")
    return value if isinstance(value, list) else [value]


@dataclass(frozen=True)
class _Part:
    """The runs of one data set, model and method: one for each combination of its other `lists`."""

    chosen: dict[str, str]
    leaves: dict[str, Any]
    lists: dict[str, list[Any]]
    evaluation: Evaluation
    unused: frozenset[str]
    """Names of [for] tables that were not applied."""

    @property
    def count(self) -> int:
        return prod(map(len, self.lists.values()))

    def runs(self) -> Iterator[PlannedRun]:
        for combination in product(*self.lists.values()):
            axes = dict(zip(self.lists, combination, strict=True))
            config = _config({**self.leaves, **axes}, self.chosen)
            if config.model in self.unused:
                raise UserError(
                    f"[for.{config.model}] would not apply, since the file does not name the model of these runs: add "
                    f"model = {config.model!r}."
                )
            yield PlannedRun(run_name(config, axes), config, self.evaluation, axes)


def _part(
    shared: Mapping[str, Any],
    special: Mapping[str, Mapping[str, Any]],
    evaluation: Mapping[str, Any],
    chosen: dict[str, str],
) -> _Part:
    """What the file says about one data set, model and method: its shared settings and the tables for each."""
    names = [chosen["data"], chosen.get("method", "dign"), chosen.get("model") or _preset_model(shared, chosen)]
    values: dict[str, Any] = {key: value for key, value in shared.items() if key not in CHOOSING}
    for name in names:
        extra = dict(special.get(name, {}))
        evaluation = {**evaluation, **_table(extra.pop("evaluate", {}), f"for.{name}.evaluate")}
        values = _overlaid(values, extra)
    leaves = _leaves(values, [part.strip() for part in names[1].split("+")])
    lists = {key: as_list(value) for key, value in leaves.items() if _is_axis(key, value)}
    return _Part(chosen, leaves, lists, Evaluation.from_mapping(evaluation), frozenset(set(special) - set(names)))


def _preset_model(shared: Mapping[str, Any], chosen: Mapping[str, str]) -> str:
    """The model where the file names none: what the preset says."""
    preset = as_list(shared["preset"])[0] if "preset" in shared else "digits" if chosen["data"] == "digits" else "paper"
    return PRESETS.get(preset, {}).get("model", RunConfig.model)


def _overlaid(values: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: dict(_table(table, f"settings.{name}")) for name, table in _settings(values).items()}
    for name, table in _settings(extra).items():
        settings.setdefault(name, {}).update(_table(table, f"settings.{name}"))
    return {**values, **extra, "settings": settings}


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    return _table(values.get("settings", {}), "settings")


def _leaves(values: Mapping[str, Any], parts: Iterable[str]) -> dict[str, Any]:
    """All settings with dotted names for those of methods (`dign.weight`), of the methods `parts` alone."""
    leaves = {key: value for key, value in values.items() if key != "settings"}
    for key, value in leaves.items():
        if isinstance(value, Mapping):
            raise UserError(f"{key} must be a value or a list of values, not a table.")
    for method, table in _settings(values).items():
        if method in parts:
            leaves |= {f"{method}.{key}": value for key, value in _table(table, f"settings.{method}").items()}
    return leaves


def _is_axis(key: str, value: Any) -> bool:
    """A list, unless the setting itself is a list (AugMix' operations); then a list of lists."""
    if not isinstance(value, list):
        return False
    method, _, name = key.rpartition(".")
    if not method:
        return True
    from dign.methods import METHODS

    kind = get_type_hints(METHODS[method]).get(name) if method in METHODS else None
    is_list = getattr(kind, "__origin__", None) is tuple
    return not is_list or (bool(value) and all(isinstance(item, list) for item in value))


def _config(leaves: Mapping[str, Any], chosen: Mapping[str, str]) -> RunConfig:
    """The checked configuration of one run: what training would refuse is refused here."""
    from dign.data import find_source
    from dign.methods.factory import make_method
    from dign.models import MODELS

    values: dict[str, Any] = {key: value for key, value in leaves.items() if "." not in key}
    settings: dict[str, dict[str, Any]] = {}
    for key, value in leaves.items():
        method, _, name = key.rpartition(".")
        if method:
            settings.setdefault(method, {})[name] = value
    config = RunConfig.from_mapping({**values, **chosen, "settings": settings})
    if config.devices * config.nodes > 1:
        raise UserError("A grid trains each run in one process, several runs at a time: leave out devices and nodes.")
    make_method(config.method, config.settings, data=config.data, label_smoothing=config.label_smoothing)
    find_source(config.data)
    if config.model not in MODELS and not config.model.startswith(("timm:", "torchvision:")):
        raise unknown_name("model", config.model, [*MODELS, "timm:NAME", "torchvision:NAME"])
    return config


def run_name(config: RunConfig, axes: Mapping[str, Any]) -> str:
    """`cifar10-resnet18-dign-sigma_max=0.2-seed0`: what the run is, and its values of the file's lists.

    It does not depend on the run's place in the grid: a longer list does not rename the other runs.
    """
    keys = [key for key in axes if key != "seed"]
    last = Counter(key.rpartition(".")[2] for key in keys)
    words = [config.data.removeprefix("folder:"), config.model, config.method]
    words += [f"{_short(key, last)}={_word(axes[key])}" for key in keys]
    return "-".join([*(slug(word) for word in words), f"seed{config.seed}"])


def _short(key: str, last: Mapping[str, int]) -> str:
    short = key.rpartition(".")[2]
    return short if last[short] == 1 else key


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(map(_word, value)) if isinstance(value, list) else str(value)


def slug(word: str) -> str:
    """A folder name: characters that are special to a shell or a file system become dashes."""
    return re.sub(r"[^\w.+=]+", "-", word).strip("-.") or "x"


def _check_use(shared: Mapping[str, Any], special: Mapping[str, Mapping[str, Any]], runs: Sequence[PlannedRun]) -> None:
    """Every table of the file must apply to some run: otherwise its name is misspelled or obsolete."""
    used = {getattr(run.config, key) for run in runs for key in CHOOSING}
    for name in special:
        if name not in used:
            raise unknown_name("data set, model or method of this grid in [for]", name, used)
    parts = {part.strip() for run in runs for part in run.config.method.split("+")}
    for table in (shared, *special.values()):
        for name in _settings(table):
            if name not in parts:
                raise unknown_name("method of this grid in [settings]", name, parts)


def _check_names(runs: Sequence[PlannedRun]) -> None:
    name, count = Counter(run.name.casefold() for run in runs).most_common(1)[0]
    if count > 1:
        raise UserError(f"{count} runs of the grid would be called {name}: a list names the same thing twice.")


def _table(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"[{name}] must be a table, not {value!r}.")
    return dict(value)
