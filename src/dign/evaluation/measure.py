"""Predict every batch under every condition and count how right and how confident the predictions are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.image_rng import make_placed_generator
from dign.core.pixels import to_float
from dign.corruptions.benchmark.read import Benchmark
from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions
from dign.evaluation.confusion_result import MAX_CLASSES
from dign.evaluation.image_record import ImageRecord
from dign.evaluation.promises import Promises, PromiseScores
from dign.evaluation.summarize import CLEAN, Confusions, Counts
from dign.evaluation.tally import Tally
from dign.metrics import ClasswiseECE, Confusion, UncertaintyScores
from dign.metrics.uncertainty import score_uncertainty
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


Reading = Callable[[Tensor], Tensor]
"""From the probabilities that a model gives to those that are counted, as at another temperature."""


def as_given(probabilities: Tensor) -> Tensor:
    """The reading of probabilities as a model gives them."""
    return probabilities


@dataclass(frozen=True)
class Counted:
    """What was counted of one reading under every condition."""

    counts: Counts = field(default_factory=dict)
    uncertainty: dict[tuple[str, int], UncertaintyScores] = field(default_factory=dict)


@dataclass(frozen=True)
class Measured(Counted):
    """What was counted under every condition.

    Attributes:
        counts: How right and how confident the predictions are.
        uncertainty: Proper scores and the like.
        others: The same of the further readings.
        confusions: Which classes were taken for which; empty for more than 100 classes.
        tallies: What each image got, in each reading.
        promises: How promises hold.
    """

    others: tuple[Counted, ...] = ()
    confusions: Confusions = field(default_factory=dict)
    tallies: tuple[dict[tuple[str, int], Tally], ...] = ({},)
    promises: dict[tuple[str, int], PromiseScores] = field(default_factory=dict)

    def images(self, *, calibrated: bool = False) -> ImageRecord | None:
        """What each image got, to be kept with the results; `calibrated`: the second reading is without calibrator."""
        return ImageRecord.of(self.tallies[0], self.tallies[1] if calibrated else None)


def split_batches(split: Split, batch_size: int) -> Iterator[tuple[Tensor, Tensor]]:
    """A split in batches, whose images may be a memory map."""
    for first in range(0, len(split), batch_size):
        part = slice(first, first + batch_size)
        yield split.take(part), split.labels[part]


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
            for name, severity in conditions.pairs:
                make = partial(conditions.corrupt, here, name, severity, first)
                yield Work((name, severity), first, labels, make)
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
    readings: Sequence[Reading] = (as_given,),
    promises: Promises | None = None,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int], None] = lambda done: None,
) -> Measured:
    """Count the predictions of every condition in each of the `readings`, the first of which is what results are of.

    With `promises`, it is also counted how those hold in the first reading.
    A `team` shares out the work. Sums are made in the order of the batches on the CPU, or of whole numbers, so that
    they come out the same to the last bit, whoever counted what. `progress` is told how many predictions are done.
    """
    confusions: Confusions = {}
    kept: dict[tuple[str, int], Tensor] = {}
    by_class: list[dict[tuple[str, int], ClasswiseECE]] = [{} for _ in readings]

    def count(part: Work) -> list[Tally]:
        images = part.make_images().to(device)
        x = to_float(images)
        x = x.clone() if x.data_ptr() == images.data_ptr() else x  # the model may work in place
        purpose = "predict/{}/{}".format(*part.condition)
        probabilities = predict(x, make_placed_generator(seed, purpose, part.first, device))
        labels = part.labels.cpu()
        read = [reading(probabilities).cpu() for reading in readings]
        _check_labels(labels, read[0].shape[1])
        for classes, each in zip(by_class, read, strict=True):
            classes.setdefault(part.condition, ClasswiseECE(bins)).update(each, labels)
        _count_confusion(confusions, part.condition, read[0], labels)
        if promises is not None:
            kept[part.condition] = kept.get(part.condition, 0) + promises.count(read[0], labels)
        return [Tally.of(each, labels, bins) for each in read]

    totals: list[dict[tuple[str, int], Tally]] = [{} for _ in readings]
    found: dict[int, list[Tally]] = {}
    conditions = []
    done = 0
    with team.all_or_none():
        for number, part in enumerate(work):
            conditions.append(part.condition)
            if number % team.world_size != team.rank:
                continue
            if team.world_size == 1:
                _merge(totals, part.condition, count(part), bins)
            else:
                found[number] = count(part)
            done += len(part.labels) * team.world_size  # the others are about as far
            progress(done)
    if team.world_size > 1:
        gathered = {number: tallies for each in team.gather(found) for number, tallies in each.items()}
        for number, condition in enumerate(conditions):
            _merge(totals, condition, gathered[number], bins)
        confusions = _sum_confusions(team.gather(confusions))
        by_class = _sum_by_class(team.gather(by_class), bins)
        kept = _sum_promises(team.gather(kept))
    first, *others = (_score(total, classes) for total, classes in zip(totals, by_class, strict=True))
    held = {condition: PromiseScores.of(promises, counts) for condition, counts in kept.items()} if promises else {}
    return Measured(first.counts, first.uncertainty, tuple(others), confusions, tuple(totals), held)


def _merge(
    totals: list[dict[tuple[str, int], Tally]], condition: tuple[str, int], tallies: list[Tally], bins: int
) -> None:
    for total, part in zip(totals, tallies, strict=True):
        total.setdefault(condition, Tally.empty(bins)).merge(part)


def _score(total: dict[tuple[str, int], Tally], by_class: dict[tuple[str, int], ClasswiseECE]) -> Counted:
    scores = {
        condition: score_uncertainty(tally.loss, by_class[condition], tally.confidences)
        for condition, tally in total.items()
        if len(tally.labels)
    }
    return Counted({condition: tally.calibration for condition, tally in total.items()}, scores)


def _check_labels(labels: Tensor, classes: int) -> None:
    low, high = (int(bound) for bound in torch.aminmax(labels))
    if low < 0 or high >= classes:
        expected = f"expected 0 to {classes - 1}, as the model has {classes} classes"
        raise UserError(f"labels are from {low} to {high}: {expected}.")


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


def _sum_by_class(
    parts: Iterable[list[dict[tuple[str, int], ClasswiseECE]]], bins: int
) -> list[dict[tuple[str, int], ClasswiseECE]]:
    """The sums of all processes, per reading; whole numbers, whose sum does not depend on the order."""
    total: list[dict[tuple[str, int], ClasswiseECE]] = []
    for part in parts:
        total = total or [{} for _ in part]
        for mine, theirs in zip(total, part, strict=True):
            for condition, classes in theirs.items():
                mine.setdefault(condition, ClasswiseECE(bins)).merge(classes)
    return total


def _sum_promises(parts: Iterable[dict[tuple[str, int], Tensor]]) -> dict[tuple[str, int], Tensor]:
    total: dict[tuple[str, int], Tensor] = {}
    for part in parts:
        for condition, counts in part.items():
            total[condition] = total.get(condition, 0) + counts
    return total
