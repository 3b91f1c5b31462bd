"""Accuracy and calibration of a model, clean and under corruptions."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError, unknown_name
from dign.core.files import write_json
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import make_placed_generator
from dign.core.pixels import to_float
from dign.core.provenance import git_commit, now, versions
from dign.corruptions import FAMILIES, NAMES, corrupt, frost_source, profile_for
from dign.corruptions.benchmark.read import Benchmark, Condition, open_benchmark
from dign.data.dataset import DataSet, Split
from dign.data.names import hide_folder_path
from dign.evaluation.examples import example_predictions
from dign.methods import Standard
from dign.metrics import Temperature, fit_temperature, tempered
from dign.metrics.batches import Counts, counted, merged
from dign.metrics.summary import summarized
from dign.metrics.temperature import log_of
from dign.models import count_parameters
from dign.models.winograd import use_winograd
from dign.parallel.devices import device_name, pick_device
from dign.parallel.team import SINGLE_PROCESS, Team
from dign.runs.folder import Run

Predictor = Callable[[Tensor, torch.Generator], Tensor]
"""From images (N,3,H,W) in [0,1] and a generator to class probabilities (N,C)."""


@dataclass(frozen=True)
class Conditions:
    """Under what to evaluate: which corruptions at which severities, made how."""

    corruptions: Sequence[str] = tuple(NAMES)
    severities: Sequence[int] = (1, 2, 3, 4, 5)
    profile: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.corruptions:
            if name not in NAMES:
                raise unknown_name("corruption", name, NAMES)
        for severity in self.severities:
            if severity not in (1, 2, 3, 4, 5):
                raise UserError(f"A severity is one of 1 to 5, not {severity}.")

    def over(self, split: Split, device: torch.device | str = "cpu") -> Iterator[Condition]:
        """The split under each corruption at each severity; the images are corrupted on `device`."""
        for name in self.corruptions:
            for severity in self.severities:
                images = _Corrupted(split.images, name, severity, self, device)
                yield Condition(name, severity, images, split.labels)


def chosen_corruptions(only: Iterable[str]) -> tuple[str, ...]:
    """The corruptions that families ("noise") and single names ("fog") say; all of them for nothing."""
    names: list[str] = []
    for word in only:
        if word not in FAMILIES and word not in NAMES:
            raise unknown_name("corruption or family", word, [*FAMILIES, *NAMES])
        names += [name for name in FAMILIES.get(word, (word,)) if name not in names]
    return tuple(names or NAMES)


@torch.no_grad()
def evaluate(
    model: nn.Module | Predictor,
    split: Split,
    conditions: Conditions | Benchmark | None = None,
    *,
    bins: int = 16,
    batch_size: int = 500,
    device: torch.device | str = "cpu",
    temperature: float | None = None,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """The `clean`, `corruptions` and `summary` parts of a results file (docs/results.md).

    `model` is a module from images in [0,1] to logits, or a function that gives probabilities. Corruptions are made
    on the fly, or read from a benchmark, batch by batch: memory does not grow with the number of images.
    With a `temperature` the pooled scores at that temperature stand beside the others.
    A `team` shares out the batches, and counts what one process would, whose figures these are.
    `progress` is told how many predictions of how many are done.
    """
    conditions = conditions or Conditions()
    seed = conditions.seed or 0
    clean = Condition("clean", 0, split.images, split.labels)
    corrupted = list(conditions if isinstance(conditions, Benchmark) else conditions.over(split, device))
    batches = [(each, first) for each in (clean, *corrupted) for first in range(0, len(each), batch_size)]

    def measure(condition: Condition, first: int) -> Counts:
        labels = condition.labels[first : first + batch_size]
        images = to_float(condition.images[first : first + batch_size].to(device))
        purpose = f"predict/{condition.name}/{condition.severity}"
        probabilities = predict(images, make_placed_generator(seed, purpose, first, device))
        scaled = None if temperature is None else tempered(probabilities, temperature)
        return [counted(each.cpu(), labels, bins) for each in (probabilities, scaled) if each is not None]

    if not batches:
        raise UserError("There are no images to evaluate: choose another --split.")
    done, total = 0, sum(map(len, [clean, *corrupted]))
    found: dict[int, Counts] = {}
    with team.all_or_none(), freeze_temporarily(model) if isinstance(model, nn.Module) else nullcontext():
        predict = partial(Standard().predict, model) if isinstance(model, nn.Module) else model
        for number in range(team.rank, len(batches), team.world_size):
            found[number] = measure(*batches[number])
            done = min(done + found[number][0].count * team.world_size, total)  # the others are about as far
            progress(done, total)
    plain, *scaled = merged([(each.name, each.severity) for each, _ in batches], team.gather(found))
    measured = summarized(plain.pop(("clean", 0)), plain)
    for counts in scaled:
        summary = summarized(counts.pop(("clean", 0)), counts)["summary"]
        measured["temperature"] = {"value": temperature, **summary["calibration"]}
    return measured


@dataclass(frozen=True)
class _Corrupted:
    """Images of a split under one corruption, made when a slice of them is asked for."""

    images: Tensor
    corruption: str
    severity: int
    conditions: Conditions
    device: torch.device | str

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, part: slice) -> Tensor:
        first = part.indices(len(self))[0]
        how = self.conditions
        images = self.images[part].to(self.device)
        return corrupt(images, self.corruption, self.severity, profile=how.profile, seed=how.seed, first=first)


@dataclass(frozen=True)
class Subject:
    """What is evaluated: a model, how it predicts, and the `run` entry of the results file."""

    model: nn.Module
    predict: Callable[[nn.Module, Tensor, torch.Generator], Tensor]
    about: dict[str, Any]


def evaluate_run(
    run: Run,
    conditions: Conditions | Benchmark | None = None,
    *,
    split: str = "test",
    device: str = "auto",
    batch_size: int = 500,
    temperature: bool = False,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Evaluate a finished run as its method predicts; writes `results.json` and `examples.json` into its folder."""
    with team.all_or_none():
        if team.is_rank_zero and not os.access(run.path, os.W_OK):
            raise UserError(f"No permission to write results into {run.path}: copy the run to where you may write.")
        method, model, data = run.method(), run.model(), run.data()
    if run.config.winograd:
        use_winograd(model)
    about = {
        "name": run.path.resolve().name,
        "method": method.key,
        "title": method.title,
        "model": run.config.model,
        "data": hide_folder_path(run.config.data),
        "seed": run.config.seed,
        "parameters": count_parameters(run.untrained_model()),
    }
    results, examples = results_of(
        Subject(model, method.predict, about),
        data,
        conditions,
        split=split,
        device=device,
        batch_size=batch_size,
        temperature=temperature,
        team=team,
        progress=progress,
    )
    with team.all_or_none():
        if team.is_rank_zero:
            write_json(run.path / "examples.json", examples)
            write_json(run.path / "results.json", results)
    return results


def results_of(
    subject: Subject,
    data: DataSet,
    conditions: Conditions | Benchmark | None = None,
    *,
    split: str = "test",
    device: str = "auto",
    batch_size: int = 500,
    temperature: bool = False,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A whole results file (docs/results.md), and a few images with predictions for the report to show.

    `temperature` fits one on the validation split. A `team` of processes shares the work; only its first process makes
    the examples.
    """
    conditions = conditions or Conditions()
    started = time.monotonic()
    images = getattr(data, split)
    if temperature and split == "validation":
        raise UserError("The temperature is fitted on the validation split: evaluate another one with --temperature.")
    target = team.device or pick_device(device)
    model: nn.Module = subject.model.to(target, memory_format=torch.channels_last)  # type: ignore[call-overload]
    predict = partial(subject.predict, model)
    with freeze_temporarily(model):
        fitted = _fit_temperature(predict, data.validation, target, batch_size, team) if temperature else None
        measured = evaluate(
            predict,
            images,
            conditions,
            batch_size=batch_size,
            device=target,
            temperature=fitted.value if fitted else None,
            team=team,
            progress=progress,
        )
        shown = _shown(conditions, images) if team.is_rank_zero else ()
        examples = example_predictions(predict, shown, data.classes, device=target)
    if fitted:
        measured["temperature"] |= {
            "split": "validation",
            "images": fitted.images,
            "nll": {"before": fitted.nll_before, "after": fitted.nll_after},
        }
    results = {
        "schema": 1,
        "run": subject.about,
        "evaluation": {"split": split, **_circumstances(images, conditions, data, target, started)},
        "classes": list(data.classes),
        **measured,
    }
    return results, examples


def _shown(conditions: Conditions | Benchmark, split: Split) -> Iterator[Condition]:
    """The conditions to give examples of: clean, and every corruption at the middle one of its severities."""
    yield Condition("clean", 0, split.images, split.labels)
    middle = sorted(conditions.severities)[len(conditions.severities) // 2]
    corrupted = conditions if isinstance(conditions, Benchmark) else conditions.over(split)
    yield from (condition for condition in corrupted if condition.severity == middle)


@torch.no_grad()
def _fit_temperature(
    predict: Predictor, split: Split, device: torch.device, batch_size: int, team: Team
) -> Temperature:
    """The temperature for the predictions on a split, clean."""
    found: dict[int, Tensor] = {}
    for first in range(team.rank * batch_size, len(split), team.world_size * batch_size):
        images = to_float(split.images[first : first + batch_size].to(device))
        probabilities = predict(images, make_placed_generator(0, "temperature", first, device))
        found[first] = log_of(probabilities).cpu()
    everything = {first: scores for part in team.gather(found) for first, scores in part.items()}
    scores = [everything[first] for first in sorted(everything)]
    return fit_temperature(torch.cat(scores) if scores else torch.empty(0, 1), split.labels)


def _circumstances(
    images: Split, conditions: Conditions | Benchmark, data: DataSet, device: torch.device, started: float
) -> dict[str, Any]:
    """On what, how, where, when and by which code was measured."""
    return {
        "images": len(images),
        "image_size": list(data.image_size),
        **_provenance(conditions, data.image_size),
        "bins": 16,
        "device": device_name(device),
        "commit": git_commit(),
        "time": now(),
        "seconds": round(time.monotonic() - started, 2),
        "versions": versions(),
    }


def _provenance(conditions: Conditions | Benchmark, image_size: tuple[int, int]) -> dict[str, Any]:
    """How the corrupted images came about."""
    if isinstance(conditions, Benchmark):
        return {
            "profile": conditions.profile,
            "seed": conditions.seed,
            "benchmark": conditions.folder.resolve().name,
            "frost": conditions.frost,
        }
    return {
        "profile": conditions.profile or profile_for(*image_size),
        "seed": conditions.seed,
        "benchmark": None,
        "frost": frost_source() if "frost" in conditions.corruptions else None,
    }


def benchmark_for(run: Run, folder: Path | str, only: Sequence[str], severities: Sequence[int] | None) -> Benchmark:
    """Open a benchmark folder for a run, and check that it belongs to the run's data set."""
    return benchmark_of(run.data(), folder, only, severities)


def benchmark_of(data: DataSet, folder: Path | str, only: Sequence[str], severities: Sequence[int] | None) -> Benchmark:
    """Open a benchmark folder made from the test images of `data`."""
    classes = data.classes
    if data.name == "tiny-imagenet":
        from dign.data import cache_root
        from dign.data.cache import open_store

        store = open_store(cache_root() / "tiny-imagenet")
        assert store is not None  # the images came from it
        classes = store.info["wnids"]
    benchmark = open_benchmark(
        folder,
        names=chosen_corruptions(only) if only else None,
        severities=severities,
        labels=data.test.labels,
        classes=classes,
    )
    first = next(iter(benchmark))
    size = tuple(first.images[:1].shape[-2:])
    if size != data.image_size:
        raise UserError(f"{folder} holds images of {size} pixels, but those of {data.name} have {data.image_size}.")
    return benchmark
