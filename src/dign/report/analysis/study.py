"""Runs grouped by method: what differs between the runs of a group is their seed alone."""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any

from dign.core.errors import UserError
from dign.core.text import clean_text
from dign.metrics import Calibration
from dign.metrics.aggregation import MCA_N_CORRUPTIONS, counts_in_mca, merge_calibrations
from dign.report.analysis.quantities import Quantity
from dign.report.load import Run
from dign.runs.config import RunConfig

METHOD_ORDER = (
    "Standard",
    "AT",
    "TRADES",
    "RSE",
    "DeepAugment",
    "AugMix",
    "AugMax",
    "DiGN w/o CR",
    "DiGN",
    "DiGN+AugMix",
)
FAMILY_ORDER = ("noise", "blur", "weather", "digital")
NOT_SETTINGS = {
    "seed", "out", "name", "label", "preset", "device", "compile", "channels_last", "winograd", "checkpoint_seconds",
    "track", "data",
}  # fmt: skip
"""Keys of a configuration in which runs of one group may differ."""
RUN = "run"
"""What tells groups of one run each apart that have the same settings."""
LONGEST_LABEL = 20
"""Characters up to which a group's settings are part of its label."""


class SeveralDataSets(UserError):
    """Runs of different data sets were put together."""


@dataclass(frozen=True)
class Statistic:
    """A quantity over seeds: mean and population standard deviation, as the paper gives them."""

    by_seed: dict[int, float]

    @property
    def count(self) -> int:
        return len(self.by_seed)

    @property
    def mean(self) -> float:
        return math.fsum(self.by_seed.values()) / self.count

    @property
    def std(self) -> float:
        return math.sqrt(math.fsum((value - self.mean) ** 2 for value in self.by_seed.values()) / self.count)


@dataclass(frozen=True)
class Group:
    """The runs of one method on one model, one per seed; `label` is unique in a study for its model."""

    label: str
    title: str
    model: str
    runs: tuple[Run, ...]
    slot: int = 0
    """Which color and marker it has everywhere."""
    settings: tuple[tuple[str, str], ...] = ()
    """In what it differs from other groups of its method, by name."""
    keys: tuple[str, ...] = ()
    """The keys of these settings in a run's configuration."""

    @property
    def settings_text(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.settings)

    def statistic(self, quantity: Quantity) -> Statistic | None:
        values = {run.seed: quantity.read(run) for run in self.runs}
        present = {seed: value for seed, value in values.items() if value is not None}
        return Statistic(present) if present else None

    def mean(self, quantity: Quantity) -> float | None:
        statistic = self.statistic(quantity)
        return statistic.mean if statistic else None

    def pooled(self, names: Iterable[str] | None) -> Calibration | None:
        """The counts of all seeds together: of the clean images (None), or of the corruptions `names`."""
        if names is None:
            parts = [run.results.clean.calibration for run in self.runs]
        else:
            chosen = list(names)
            found = [run.results.corruptions.get(name) for run in self.runs for name in chosen]
            parts = [each.calibration for corruption in found if corruption for each in corruption.severities.values()]
        return merge_calibrations(parts) if parts else None


@dataclass(frozen=True)
class Study:
    """What a report is about: groups of runs on one data set."""

    data: str
    groups: tuple[Group, ...]
    warnings: list[str] = field(default_factory=list)

    @property
    def runs(self) -> list[Run]:
        return [run for group in self.groups for run in group.runs]

    @property
    def models(self) -> list[str]:
        return list(dict.fromkeys(group.model for group in self.groups))

    def of_model(self, model: str) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.model == model)

    @property
    def corruptions(self) -> dict[str, str]:
        """Corruption to family, in the order of families, of all runs together."""
        found = {name: corruption.family for run in self.runs for name, corruption in run.results.corruptions.items()}
        families = [*FAMILY_ORDER, *sorted(set(found.values()) - set(FAMILY_ORDER))]
        return dict(sorted(found.items(), key=lambda item: families.index(item[1])))

    @property
    def noises(self) -> tuple[str, ...]:
        """The corruptions of mCA-N that were measured."""
        return tuple(name for name in MCA_N_CORRUPTIONS if name in self.corruptions)

    @property
    def counted(self) -> tuple[str, ...]:
        """The corruptions of mCA that were measured."""
        return tuple(name for name in self.corruptions if counts_in_mca(name))

    @property
    def severities(self) -> list[int]:
        return sorted({s for run in self.runs for c in run.results.corruptions.values() for s in c.severities})


def make_study(runs: Sequence[Run], warnings: Iterable[str] = ()) -> Study:
    """Group runs by model and method; refuse runs of different data sets."""
    datasets = sorted({run.data for run in runs})
    if len(datasets) > 1:
        raise SeveralDataSets(
            f"these runs are of different data sets ({', '.join(datasets)}), which cannot share a table: choose one"
        )
    if len({run.results.clean.calibration.bins for run in runs}) > 1:
        raise UserError("These runs were evaluated with different numbers of calibration bins: evaluate them alike.")
    notes = [*warnings, *_evaluation_differences(runs)]
    groups = [group for same in _by_model_and_method(runs) for group in _split_variants(same, notes)]
    groups.sort(key=lambda group: (group.model, *method_rank(group.title), list(map(_natural, group.settings))))
    return Study(datasets[0], _with_slots(_with_labels(groups)), notes)


def method_rank(title: str) -> tuple[int, str]:
    return (METHOD_ORDER.index(title) if title in METHOD_ORDER else len(METHOD_ORDER), title)


def _by_model_and_method(runs: Sequence[Run]) -> list[list[Run]]:
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.model, run.title), []).append(run)
    return list(groups.values())


def _split_variants(runs: list[Run], notes: list[str]) -> list[Group]:
    """One group per configuration; runs that have the same seed and configuration are shown one by one."""
    keys = _differing_settings(runs)
    variants: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        variants.setdefault(tuple(clean_text(_setting(run.config, key)) for key in keys), []).append(run)
    title, model = runs[0].title, runs[0].model
    names = [clean_text(key.split(".")[-1]) for key in keys]
    groups = []
    for values, members in variants.items():
        settings = tuple(zip(names, values, strict=True))
        in_order = tuple(sorted(members, key=lambda run: run.seed))
        whole = Group(title, title, model, in_order, settings=settings, keys=tuple(keys))
        repeated = [seed for seed, count in Counter(run.seed for run in members).items() if count > 1]
        if not repeated:
            groups.append(whole)
            continue
        label = f"{title} ({whole.settings_text})" if settings else title
        notes.append(f"Several runs of {label} on {model} have the seed {repeated[0]}: each run is shown alone.")
        same_name = Counter(run.name for run in members)
        for run in members:
            name = run.name if same_name[run.name] == 1 else clean_text(run.folder)
            groups.append(replace(whole, runs=(run,), settings=(*settings, (RUN, name))))
    return groups


def _natural(setting: tuple[str, str]) -> tuple[float, str]:
    """Sorts numbers by value and before words."""
    try:
        return (float(setting[1]), setting[1])
    except ValueError:
        return (math.inf, setting[1])


def _with_labels(groups: Sequence[Group]) -> list[Group]:
    """Names that fit into a chart: the method's, with its settings where they are short, else with a letter.

    If one setting differs and its values are numbers, these alone come before letters.
    """
    variants: dict[str, list[Group]] = {}
    for group in groups:
        variants.setdefault(group.title, []).append(group)
    labels = {title: _labels(title, of_title) for title, of_title in variants.items()}
    return [replace(group, label=labels[group.title][group.settings]) for group in groups]


def _labels(title: str, variants: Sequence[Group]) -> dict[tuple[tuple[str, str], ...], str]:
    """A label for each of the settings of a method's groups."""
    spelled = {group.settings: spell_out(group) for group in variants}
    values = {settings: " ".join((title, *(f"({value})" for _, value in settings))) for settings in spelled}
    one_number = all(len(settings) <= 1 and _are_numbers(settings) for settings in spelled)
    for labels in (spelled, values) if one_number else (spelled,):
        if all(len(label) <= max(LONGEST_LABEL, len(title)) for label in labels.values()):
            return labels
    marks = [*string.ascii_uppercase, *map(str, range(len(string.ascii_uppercase) + 1, len(spelled) + 1))]
    lettered = (settings for settings in spelled if settings)
    return spelled | {settings: f"{title} {mark}" for settings, mark in zip(lettered, marks, strict=False)}


def _are_numbers(settings: tuple[tuple[str, str], ...]) -> bool:
    return all(name != RUN and _natural((name, value))[0] < math.inf for name, value in settings)


def spell_out(group: Group) -> str:
    """`DiGN (weight 0.5)`, `DiGN [second]` for one run of several that have the same settings."""
    named = [f"{name} {value}" for name, value in group.settings if name != RUN]
    runs = [value for name, value in group.settings if name == RUN]
    return group.title + (f" ({', '.join(named)})" if named else "") + "".join(f" [{name}]" for name in runs)


def _differing_settings(runs: Sequence[Run]) -> list[str]:
    def settings(run: Run) -> dict[str, Any]:
        return {key: value for key, value in run.config.items() if key not in NOT_SETTINGS}

    known = [settings(run) for run in runs if run.config]
    keys = sorted({key for config in known for key in config})
    return [key for key in keys if len({repr(_setting(config, key)) for config in known}) > 1]


def _setting(config: dict[str, Any], key: str) -> Any:
    """A run's setting: one that did not exist yet when the run was made had the value that is its default now."""
    if key in config:
        return config[key]
    return _default(key) if config else "not known"


@cache
def _default(key: str) -> Any:
    from dign.methods import METHODS  # takes seconds to import, and hardly any report asks

    parts = key.split(".")
    owner = METHODS.get(parts[1]) if parts[0] == "settings" and len(parts) == 3 else RunConfig
    defaults = {spec.name: spec.default for spec in fields(owner)} if owner else {}
    return defaults.get(parts[-1])


def _evaluation_differences(runs: Sequence[Run]) -> list[str]:
    notes = []
    for key in ("split", "images", "image_size", "profile", "jpeg_quality", "seed", "benchmark", "frost", "precision"):
        found = {getattr(run.results.evaluation, key) for run in runs}
        values = sorted(clean_text(value) for value in found)
        if len(values) > 1:
            notes.append(f"The runs were evaluated with different '{key}' ({', '.join(values)}): compare with care.")
    splits = {run.results.evaluation.split or "test" for run in runs} - {"test"}
    if splits:
        names = " and ".join(clean_text(split) for split in sorted(splits))
        notes.append(f"Measured on {names} images, not on test images: see Runs.")
    if len({run.results.calibrator is None for run in runs}) > 1:
        notes.append(
            "Some models are calibrated and others are not: their calibration errors and proper scores are not "
            "comparable, but for those that are given without a temperature."
        )
    commits = {clean_text(run.details["commit"]) for run in runs if run.details.get("commit")}
    if len(commits) > 1:
        notes.append(f"The runs were trained by {len(commits)} different states of the code (see Runs).")
    measured = [dict(sorted(run.results.corruptions.items())) for run in runs]
    corruptions = {tuple(each) for each in measured}
    conditions = {tuple((name, *corruption.severities) for name, corruption in each.items()) for each in measured}
    if len(conditions) > 1:
        what = "under different corruptions" if len(corruptions) > 1 else "at different severities"
        notes.append(f"The runs were evaluated {what}: their means are not comparable.")
    return notes


def _with_slots(groups: Sequence[Group]) -> tuple[Group, ...]:
    """A known method has its own slot; variants and unknown methods take the next free ones, alike for all models."""
    labels = list(dict.fromkeys(group.label for group in groups if group.label not in METHOD_ORDER))
    slots = {label: len(METHOD_ORDER) + index for index, label in enumerate(labels)}
    slots |= {label: index for index, label in enumerate(METHOD_ORDER)}
    return tuple(replace(group, slot=slots[group.label]) for group in groups)
