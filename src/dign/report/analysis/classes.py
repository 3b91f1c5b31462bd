"""Accuracy by class and confusion of a method, its seeds added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dign.evaluation.confusion_result import ConfusionResult
from dign.report.analysis.quantities import corruption_title
from dign.report.analysis.study import Group


@dataclass(frozen=True)
class Matrix:
    """The confusion of one condition, added up over `seeds` seeds."""

    matrix: ConfusionResult
    seeds: int

    @property
    def is_clean(self) -> bool:
        return self.matrix.corruption == "clean"

    @property
    def title(self) -> str:
        name, severity = self.matrix.corruption, self.matrix.severity
        return "Clean images" if self.is_clean else f"{corruption_title(name)}, severity {severity}"

    @property
    def accuracy(self) -> float:
        """Percent of the images that are right."""
        right = sum(row[index] for index, row in enumerate(self.matrix.counts))
        return 100 * right / sum(map(sum, self.matrix.counts))


@dataclass(frozen=True)
class Pair:
    """Images of a class that were taken for another one."""

    true: str
    predicted: str
    count: int
    share: float
    """In percent of the images of the true class."""


def classes_of(group: Group) -> tuple[str, ...]:
    """The classes of the first run with a confusion matrix; empty where none has one."""
    return next((run.results.classes for run in group.runs if run.results.confusion), ())


def pool_matrices(group: Group) -> list[Matrix]:
    """Clean images first, then the condition that is worst for most of the seeds; empty where nothing was measured."""
    classes = classes_of(group)
    runs = [run.results.confusion for run in group.runs if run.results.confusion and run.results.classes == classes]
    found = [matrix for confusion in runs for matrix in confusion]
    often = Counter((matrix.corruption, matrix.severity) for matrix in found)
    worst = [condition for condition, _ in often.most_common() if condition[0] != "clean"][:1]
    return [
        _add([matrix for matrix in found if (matrix.corruption, matrix.severity) == condition])
        for condition in (("clean", 0), *worst)
        if condition in often
    ]


def _add(matrices: Sequence[ConfusionResult]) -> Matrix:
    first = matrices[0]
    rows = (zip(*rows, strict=True) for rows in zip(*(matrix.counts for matrix in matrices), strict=True))
    counts = tuple(tuple(map(sum, row)) for row in rows)
    return Matrix(ConfusionResult(first.corruption, first.severity, counts), len(matrices))


def most_confused(matrix: ConfusionResult, classes: Sequence[str], count: int) -> list[Pair]:
    """The pairs of classes that are confused most often, in relation to the images of the true class."""
    pairs = [
        Pair(classes[i], classes[j], wrong, 100 * wrong / sum(row))
        for i, row in enumerate(matrix.counts)
        for j, wrong in enumerate(row)
        if i != j and wrong
    ]
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.count))[:count]
