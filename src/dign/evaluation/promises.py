"""How promises made on held-out images hold under a condition: of an error among the answers, of sets' coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.evaluation.json_values import as_object, fail, is_count, is_number
from dign.metrics.conformal import SETS, prediction_sets
from dign.runs.calibrator import HeldOut

ERROR, COVERAGE = 0.05, 0.9
"""What is promised in an evaluation: at most this error among the answers, at least this coverage of sets."""


@dataclass(frozen=True)
class Promises:
    """What is promised, and the thresholds that held-out images gave for it.

    Attributes:
        images: Number of held-out images.
        error: The promised error among the answers.
        threshold: Confidence from which on the model answers; None where the error cannot be promised.
        coverage: The promised coverage of prediction sets.
        quantiles: For each kind of sets, the score up to which classes belong to them.
    """

    images: int
    error: float
    threshold: float | None
    coverage: float
    quantiles: dict[str, float]

    @classmethod
    def of(cls, held_out: HeldOut, error: float = ERROR, coverage: float = COVERAGE) -> Promises:
        """The thresholds for these promises."""
        try:
            threshold: float | None = held_out.threshold(error)
        except UserError:
            threshold = None
        quantiles = {kind: min(held_out.quantile(coverage, kind), 2.0) for kind in SETS}
        return cls(len(held_out), error, threshold, coverage, quantiles)

    def count(self, probabilities: Tensor, labels: Tensor) -> Tensor:
        """Whole numbers that add up: images, answers, wrong ones; per kind of sets, true classes in them, and sizes."""
        confidence, answers = probabilities.max(1)
        answered = torch.zeros_like(labels, dtype=torch.bool)
        if self.threshold is not None:
            answered = confidence >= self.threshold - 1e-7
        counts = [torch.tensor(len(labels)), answered.sum(), (answered & (answers != labels)).sum()]
        rows = torch.arange(len(labels))
        for kind in SETS:
            sets = prediction_sets(probabilities, self.quantiles[kind], kind)
            counts += [sets[rows, labels].sum(), sets.sum()]
        return torch.stack(counts).long()

    @classmethod
    def from_json(cls, value: Any) -> Promises:
        given = as_object(value, "promises")
        quantiles = as_object(given.get("quantiles"), "promises.quantiles")
        numbers = [given.get("error"), given.get("coverage"), *(quantiles.get(kind) for kind in SETS)]
        threshold = given.get("threshold")
        if not all(map(is_number, numbers)) or not is_count(given.get("images")):
            fail("promises lacks a number")
        if threshold is not None and not is_number(threshold):
            fail("promises.threshold is neither a number nor null")
        kinds = {kind: quantiles[kind] for kind in SETS}
        return cls(given["images"], given["error"], threshold, given["coverage"], kinds)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class PromiseScores:
    """How promises hold under one condition, in percent.

    Attributes:
        answered: Images that are answered; the others are "unsure". None where the error cannot be promised.
        error: Wrong answers among those; None where nothing is answered.
        coverage: For each kind of prediction sets, how often the true class is in them.
        size: And how many classes they hold on average, which is not a percentage.
    """

    answered: float | None
    error: float | None
    coverage: dict[str, float]
    size: dict[str, float]

    @classmethod
    def of(cls, promises: Promises, counts: Tensor) -> PromiseScores:
        """The scores of what `promises.count` counted."""
        images, answered, wrong, *sets = counts.tolist()
        return cls(
            answered=None if promises.threshold is None else 100 * answered / images,
            error=100 * wrong / answered if answered else None,
            coverage={kind: 100 * sets[2 * i] / images for i, kind in enumerate(SETS)},
            size={kind: sets[2 * i + 1] / images for i, kind in enumerate(SETS)},
        )

    @classmethod
    def pool(cls, scores: Sequence[PromiseScores]) -> PromiseScores:
        """The scores of several conditions with equally many images, taken together.

        >>> sets = {"coverage": {"adaptive": 90.0}, "size": {"adaptive": 1.5}}
        >>> pooled = PromiseScores.pool([PromiseScores(80.0, 5.0, **sets), PromiseScores(20.0, 15.0, **sets)])
        >>> pooled.answered, pooled.error  # 4 + 3 wrong of 80 + 20 answers
        (50.0, 7.0)
        """
        answered = [each.answered for each in scores if each.answered is not None]
        wrong = [each.answered * each.error for each in scores if each.answered and each.error is not None]
        return cls(
            answered=fmean(answered) if len(answered) == len(scores) else None,
            error=sum(wrong) / sum(answered) if sum(answered) else None,
            coverage={kind: fmean(each.coverage[kind] for each in scores) for kind in scores[0].coverage},
            size={kind: fmean(each.size[kind] for each in scores) for kind in scores[0].size},
        )

    @classmethod
    def from_json(cls, value: Any, where: str) -> PromiseScores:
        given = as_object(value, where)
        tables = [as_object(given.get(key), f"{where}.{key}") for key in ("coverage", "size")]
        numbers = [table.get(kind) for table in tables for kind in SETS]
        numbers += [given[key] for key in ("answered", "error") if given.get(key) is not None]
        if not all(map(is_number, numbers)):
            fail(f"{where} lacks a number")
        coverage, size = ({kind: table[kind] for kind in SETS} for table in tables)
        return cls(given.get("answered"), given.get("error"), coverage, size)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
