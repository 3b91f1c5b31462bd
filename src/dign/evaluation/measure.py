"""Predict every batch under every condition and count how right and how confident the predictions are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from dign.core.image_rng import make_placed_generator
from dign.core.pixels import to_float
from dign.corruptions import corrupt
from dign.corruptions.benchmark.read import Benchmark
from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions
from dign.evaluation.confusion_result import MAX_CLASSES
from dign.evaluation.summarize import CLEAN, Confusions, Counts
from dign.metrics import Calibration, Confusion, apply_temperature
from dign.parallel.team import SINGLE_PROCESS, Team

Predictor = Callable[[Tensor, torch.Generator], Tensor]
"""From images (N,C,H,W) in [0,1] and a generator to class probabilities (N,classes)."""

Batches = Iterable[tuple[Tensor, Tensor]]
"""Images (N,C,H,W), uint8 or float in [0,1], with class indices (N,)."""


@dataclass(frozen=True)
class Work:
    """A batch under one condition; `first` is the number of its first image in the data set."""

    condition: tuple[str, int]
    first: int
    labels: Tensor
    make_images: Callable[[], Tensor]


@dataclass(frozen=True)
class Measured:
    """What was counted under every condition.

    Attributes:
        counts: How right and how confident the predictions are.
        scaled: The same of the predictions at a temperature; None without one.
        confusions: Which classes were taken for which; empty for more than 100 classes.
    """

    counts: Counts = field(default_factory=dict)
    scaled: Counts | None = None
    confusions: Confusions = field(default_factory=dict)


def split_batches(split: Split, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A split in batches, whose images may be a memory map."""
    for first in range(0, len(split), batch_size):
        yield split.images[first : first + batch_size], split.labels[first : first + batch_size]


def plan_work(
    batches: Batches, conditions: Conditions | Benchmark, batch_size: int, device: torch.device | str
) -> Iterator[Work]:
    """Each clean batch, followed by its corruptions where these are made on the fly; then a benchmark's batches.

    The images are read once, and corrupted on the device.
    """
    first = 0
    for images, labels in batches:
        here = images.to(device)
        yield Work(CLEAN, first, labels, here.detach)
        if isinstance(conditions, Conditions):
            degrade = partial(corrupt, here, profile=conditions.profile, seed=conditions.seed, first=first)
            for name, severity in conditions.pairs:
                yield Work((name, severity), first, labels, partial(degrade, name, severity))
        first += len(labels)
    if isinstance(conditions, Benchmark):
        for stored in conditions:
            for start in range(0, len(stored), batch_size):
                part = slice(start, start + batch_size)
                load = partial(stored.images.__getitem__, part)
                yield Work((stored.name, stored.severity), start, stored.labels[part], load)


@torch.no_grad()
def measure(
    predict: Predictor,
    work: Iterable[Work],
    *,
    seed: int = 0,
    bins: int = 16,
    device: torch.device | str = "cpu",
    temperature: float | None = None,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int], None] = lambda done: None,
) -> Measured:
    """Count the predictions of every condition; with a `temperature` also those at it.

    A `team` shares out the work. Sums are made in the order of the batches on the CPU, so that they come out the same
    to the last bit, whoever counted what. `progress` is told how many predictions are done.
    """
    confusions: Confusions = {}

    def count(part: Work) -> list[Calibration]:
        images = part.make_images().to(device)
        x = to_float(images)
        x = x.clone() if x.data_ptr() == images.data_ptr() else x  # the model may work in place
        purpose = "predict/{}/{}".format(*part.condition)
        probabilities = predict(x, make_placed_generator(seed, purpose, part.first, device))
        scaled = None if temperature is None else apply_temperature(probabilities, temperature)
        here, labels = probabilities.cpu(), part.labels.cpu()
        counts = [_count(here, labels, bins)]
        if scaled is not None:
            counts.append(_count(scaled.cpu(), labels, bins))
        _count_confusion(confusions, part.condition, here, labels)
        return counts

    totals: list[Counts] = [{} for _ in range(1 if temperature is None else 2)]
    found: dict[int, list[Calibration]] = {}
    conditions = []
    done = 0
    with team.all_or_none():
        for number, part in enumerate(work):
            conditions.append(part.condition)
            if number % team.world_size != team.rank:
                continue
            if team.world_size == 1:
                _merge(totals, part.condition, count(part))
            else:
                found[number] = count(part)
            done += len(part.labels) * team.world_size  # the others are about as far
            progress(done)
    if team.world_size > 1:
        gathered = {number: counts for each in team.gather(found) for number, counts in each.items()}
        for number, condition in enumerate(conditions):
            _merge(totals, condition, gathered[number])
        confusions = _sum_confusions(team.gather(confusions))
    return Measured(totals[0], totals[1] if temperature is not None else None, confusions)


def _count(probabilities: Tensor, labels: Tensor, bins: int) -> Calibration:
    calibration = Calibration(bins)
    calibration.update(probabilities, labels)
    return calibration


def _merge(totals: list[Counts], condition: tuple[str, int], counts: list[Calibration]) -> None:
    for total, part in zip(totals, counts, strict=True):
        total.setdefault(condition, Calibration(part.bins)).merge(part)


def _count_confusion(confusions: Confusions, condition: tuple[str, int], probabilities: Tensor, labels: Tensor) -> None:
    """Whole numbers, whose sum does not depend on the order: one matrix per condition is enough in each process."""
    classes = probabilities.shape[1]
    if classes <= MAX_CLASSES:
        confusions.setdefault(condition, Confusion(classes)).update(probabilities, labels)


def _sum_confusions(parts: Iterable[Confusions]) -> Confusions:
    total: Confusions = {}
    for part in parts:
        for condition, confusion in part.items():
            total.setdefault(condition, Confusion(confusion.classes)).merge(confusion)
    return total
