"""Accuracy and calibration of a model, clean and under corruptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dign.corruptions import FAMILIES, NAMES, corrupt, frost_source, profile_for
from dign.corruptions.benchmark import Benchmark, Condition, open_benchmark
from dign.data.base import Split
from dign.devices import as_float, make_fabric
from dign.errors import UserError, unknown_name
from dign.examples import example_predictions
from dign.files import write_json
from dign.frozen import frozen
from dign.methods import Standard
from dign.metrics import Calibration, mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.accuracy import EXCLUDED
from dign.models import count_parameters
from dign.runs import Run, git_commit, now, versions
from dign.seeds import make_generator

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

    def over(self, split: Split) -> Iterator[Condition]:
        """The split under each corruption at each severity."""
        for name in self.corruptions:
            for severity in self.severities:
                yield Condition(name, severity, _Corrupted(split.images, name, severity, self), split.labels)


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
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """The `clean`, `corruptions` and `summary` parts of a results file (docs/results.md).

    `model` is a module from images in [0,1] to logits, or a function that gives probabilities. Corruptions are made
    on the fly, or read from a benchmark, batch by batch: memory does not grow with the number of images.
    `progress` is told how many predictions of how many are done.
    """
    conditions = conditions or Conditions()
    seed = conditions.seed or 0
    clean = Condition("clean", 0, split.images, split.labels)
    corrupted = list(conditions if isinstance(conditions, Benchmark) else conditions.over(split))
    done, total = 0, sum(map(len, [clean, *corrupted]))

    def measure(condition: Condition) -> Calibration:
        nonlocal done
        calibration = Calibration(bins)
        for first in range(0, len(condition), batch_size):
            labels = condition.labels[first : first + batch_size]
            images = as_float(condition.images[first : first + batch_size].to(device))
            purpose = f"predict/{condition.name}/{condition.severity}"
            probabilities = predict(images, make_generator(seed, purpose, first, device))
            calibration.update(probabilities.cpu(), labels)
            done += len(labels)
            progress(done, total)
        return calibration

    with frozen(model) if isinstance(model, nn.Module) else nullcontext():
        predict = partial(Standard().predict, model) if isinstance(model, nn.Module) else model
        return summarised(measure(clean), {(each.name, each.severity): measure(each) for each in corrupted})


@dataclass(frozen=True)
class _Corrupted:
    """Images of a split under one corruption, made when a slice of them is asked for."""

    images: Tensor
    corruption: str
    severity: int
    conditions: Conditions

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, part: slice) -> Tensor:
        first = part.indices(len(self))[0]
        how = self.conditions
        return corrupt(
            self.images[part], self.corruption, self.severity, profile=how.profile, seed=how.seed, first=first
        )


def summarised(clean: Calibration, corrupted: dict[tuple[str, int], Calibration]) -> dict[str, Any]:
    """Scores of every condition, and the means and pooled calibrations over them."""
    families = {name: family for family, names in FAMILIES.items() for name in names}
    tables: dict[str, Any] = {}
    for (name, severity), calibration in corrupted.items():
        table = tables.setdefault(name, {"family": families[name], "severities": {}})
        table["severities"][str(severity)] = _condition(calibration)
    accuracies = {
        name: {severity: condition["accuracy"] for severity, condition in table["severities"].items()}
        for name, table in tables.items()
    }
    return {
        "clean": _condition(clean),
        "corruptions": tables,
        "summary": {
            "clean_accuracy": clean.compute().accuracy,
            "mca": mean_corruption_accuracy(accuracies),
            "mca_n": noise_corruption_accuracy(accuracies),
            "families": {
                family: mean
                for family, names in FAMILIES.items()
                if (mean := mean_corruption_accuracy(accuracies, names)) is not None
            },
            "calibration": {
                "clean": clean.compute().as_dict(),
                "noise": _pooled(corrupted, FAMILIES["noise"], clean.bins),
                "all": _pooled(corrupted, NAMES, clean.bins),
            },
        },
    }


def _condition(calibration: Calibration) -> dict[str, Any]:
    return {**calibration.compute().as_dict(), "bins": calibration.state()}


def _pooled(
    corrupted: dict[tuple[str, int], Calibration], names: Iterable[str], bins: int
) -> dict[str, float | int | None] | None:
    """Calibration over the predictions of all these corruptions together, not a mean of their calibrations."""
    pool = Calibration(bins)
    members = [part for (name, _), part in corrupted.items() if name in names and name != EXCLUDED]
    for part in members:
        pool.merge(part)
    return pool.compute().as_dict() if members else None


def evaluate_run(
    run: Run,
    conditions: Conditions | Benchmark | None = None,
    *,
    split: str = "test",
    device: str = "auto",
    batch_size: int = 500,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Evaluate a finished run as its method predicts, and write `results.json` into its folder."""
    conditions = conditions or Conditions()
    started = time.monotonic()
    model, method = run.model(), run.method()
    images = getattr(run.data(), split)
    fabric = make_fabric(device, "32")
    model = model.to(fabric.device, memory_format=torch.channels_last)
    predict = partial(method.predict, model)
    with frozen(model):
        measured = evaluate(predict, images, conditions, batch_size=batch_size, device=fabric.device, progress=progress)
        examples = example_predictions(predict, _shown(conditions, images), run.classes, device=fabric.device)
    results = {
        "schema": 1,
        "run": {
            "name": run.path.resolve().name,
            "method": method.key,
            "title": method.title,
            "model": run.config.model,
            "data": run.config.data,
            "seed": run.config.seed,
            "parameters": count_parameters(run.untrained_model()),
        },
        "evaluation": {
            "split": split,
            "images": len(images),
            "image_size": list(run.image_size),
            **_provenance(conditions, run.image_size),
            "bins": 16,
            "commit": git_commit(),
            "time": now(),
            "seconds": round(time.monotonic() - started, 2),
            "versions": versions(),
        },
        "classes": run.classes,
        **measured,
    }
    write_json(run.path / "examples.json", examples)
    write_json(run.path / "results.json", results)
    return results


def _shown(conditions: Conditions | Benchmark, split: Split) -> Iterator[Condition]:
    """The conditions to give examples of: clean, and every corruption at the middle one of its severities."""
    yield Condition("clean", 0, split.images, split.labels)
    middle = sorted(conditions.severities)[len(conditions.severities) // 2]
    corrupted = conditions if isinstance(conditions, Benchmark) else conditions.over(split)
    yield from (condition for condition in corrupted if condition.severity == middle)


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


def benchmark_for(run: Run, folder: Path | str, only: Sequence[str], severities: Sequence[int]) -> Benchmark:
    """Open a benchmark folder for a run, and check that it belongs to the run's data set."""
    data = run.data()
    classes = data.classes
    if run.config.data == "tiny-imagenet":
        from dign.data import cache_root
        from dign.data.store import open_store

        classes = open_store(cache_root() / "tiny-imagenet").info["wnids"]
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
        raise UserError(f"{folder} holds images of {size} pixels, but those of the run have {data.image_size}.")
    return benchmark
