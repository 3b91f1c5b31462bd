"""The confusion matrices of a results file: of the clean images, and of the condition that is hardest for the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dign.core.text import clean_text
from dign.evaluation.json_values import as_object, fail, is_count
from dign.evaluation.result_parts import ConditionResult

MAX_CLASSES = 100
"""Above this many classes matrices are left out of results: they grow with the square of it."""
MAX_ENTRIES = 2
"""The clean images, and one corruption."""


@dataclass(frozen=True)
class ConfusionResult:
    """How often images of each class were predicted to be of each class, under one condition.

    Attributes:
        corruption: Name of the corruption, or "clean".
        severity: 1 to 5; 0 for the clean images.
        counts: Number of images by true class (rows) and predicted class (columns).
    """

    corruption: str
    severity: int
    counts: tuple[tuple[int, ...], ...]

    @property
    def accuracy_by_class(self) -> tuple[float | None, ...]:
        """Accuracy on the images of each class, in percent; None for a class without images."""
        totals = [sum(row) for row in self.counts]
        return tuple(
            100 * row[index] / total if total else None
            for index, (row, total) in enumerate(zip(self.counts, totals, strict=True))
        )

    @property
    def balanced_accuracy(self) -> float:
        """The mean of the classes' accuracies, in percent; classes without images do not count."""
        known = [value for value in self.accuracy_by_class if value is not None]
        return sum(known) / len(known)

    @classmethod
    def from_json(
        cls, value: Any, where: str, classes: int, conditions: Mapping[tuple[str, int], ConditionResult]
    ) -> ConfusionResult:
        """Read an untrusted entry that has to agree with the measured `conditions`."""
        given = as_object(value, where)
        name, severity = given.get("corruption"), given.get("severity")
        if not isinstance(name, str) or not isinstance(severity, int) or not is_count(severity):
            fail(f"{where} names no condition")
        condition = conditions.get((clean_text(name), severity))
        if condition is None:
            fail(f"{where} is of {clean_text(name)}, severity {severity}, which was not measured")
        counts = _read_counts(given.get("counts"), where, classes)
        if sum(map(sum, counts)) != condition.count:
            fail(f"{where}: its counts do not add up to the images of its condition")
        correct = int(condition.calibration.state()["correct"].sum())
        if sum(row[index] for index, row in enumerate(counts)) != correct:
            fail(f"{where}: its diagonal does not add up to the right predictions of its condition")
        return cls(clean_text(name), severity, counts)

    def to_json(self) -> dict[str, Any]:
        return {"corruption": self.corruption, "severity": self.severity, "counts": [list(row) for row in self.counts]}


def _read_counts(rows: Any, where: str, classes: int) -> tuple[tuple[int, ...], ...]:
    if not isinstance(rows, list) or len(rows) != classes or not 0 < classes <= MAX_CLASSES:
        fail(f"{where}: its counts are not a row for each of 1 to {MAX_CLASSES} classes")
    for row in rows:
        if not isinstance(row, list) or len(row) != classes:
            fail(f"{where}: its counts are not square")
        if not all(map(is_count, row)):
            fail(f"{where}: its counts hold something that is not a whole number, or is negative")
    return tuple(map(tuple, rows))


def read_confusion(
    value: Any, classes: int, conditions: Mapping[tuple[str, int], ConditionResult]
) -> tuple[ConfusionResult, ...]:
    """The entry `confusion` of a results file; None, as in older files, is no matrix."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_ENTRIES:
        fail(f"confusion is not a list of at most {MAX_ENTRIES} matrices")
    found = [
        ConfusionResult.from_json(entry, f"confusion[{index}]", classes, conditions)
        for index, entry in enumerate(value)
    ]
    if len({(one.corruption, one.severity) for one in found}) != len(found):
        fail("confusion has two matrices of one condition")
    return tuple(found)


def find_worst(accuracies: Mapping[tuple[str, int], float]) -> tuple[str, int] | None:
    """The condition of the lowest accuracy, the first one where several have it; None without conditions.

    >>> find_worst({("fog", 1): 80.0, ("fog", 5): 40.0, ("snow", 5): 40.0})
    ('fog', 5)
    """
    return min(accuracies, key=lambda condition: accuracies[condition], default=None)
