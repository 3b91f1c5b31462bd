"""Accuracy and calibration of a model, clean and under corruptions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dign.corruptions import FAMILIES, NAMES, corrupt, profile_for
from dign.data.base import Split
from dign.devices import as_float, make_fabric
from dign.errors import UserError, unknown_name
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

    def __len__(self) -> int:
        return len(self.corruptions) * len(self.severities)

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return ((name, severity) for name in self.corruptions for severity in self.severities)


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
    conditions: Conditions | None = None,
    *,
    bins: int = 16,
    batch_size: int = 500,
    device: torch.device | str = "cpu",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """The `clean`, `corruptions` and `summary` parts of a results file (docs/results.md).

    `model` is a module from images in [0,1] to logits, or a function that gives probabilities. Corruptions are made
    on the fly, batch by batch: memory does not grow with the number of images. `progress` is told how many predictions of how many are done.
    """
    conditions = conditions or Conditions()
    done, total = 0, len(split) * (1 + len(conditions))

    def measure(purpose: str, images_at: Callable[[int, int], Tensor]) -> Calibration:
        calibration = Calibration(bins)
        for first in range(0, len(split), batch_size):
            labels = split.labels[first : first + batch_size]
            generator = make_generator(conditions.seed, f"predict/{purpose}", first, device)
            images = as_float(images_at(first, first + len(labels)).to(device))
            calibration.update(predict(images, generator).cpu(), labels)
            nonlocal done
            done += len(labels)
            progress(done, total)
        return calibration

    def corrupted_images(name: str, severity: int, first: int, last: int) -> Tensor:
        images = split.images[first:last].to(device)
        return corrupt(images, name, severity, profile=conditions.profile, seed=conditions.seed, first=first)

    with frozen(model) if isinstance(model, nn.Module) else nullcontext():
        predict = partial(Standard().predict, model) if isinstance(model, nn.Module) else model
        clean = measure("clean", lambda first, last: split.images[first:last])
        corrupted = {
            (name, severity): measure(f"{name}/{severity}", partial(corrupted_images, name, severity))
            for name, severity in conditions
        }
    return summarised(clean, corrupted)


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
    conditions: Conditions | None = None,
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
    with frozen(model):
        measured = evaluate(
            partial(method.predict, model),
            images,
            conditions,
            batch_size=batch_size,
            device=fabric.device,
            progress=progress,
        )
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
            "profile": conditions.profile or profile_for(*run.image_size),
            "seed": conditions.seed,
            "benchmark": None,
            "frost": None,
            "bins": 16,
            "commit": git_commit(),
            "time": now(),
            "seconds": round(time.monotonic() - started, 2),
            "versions": versions(),
        },
        "classes": run.classes,
        **measured,
    }
    write_json(run.path / "results.json", results)
    return results
