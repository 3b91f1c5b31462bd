"""From the counts of every condition to results: scores, means and pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dign.corruptions import FAMILIES, family_of
from dign.evaluation.confusion_result import MAX_CLASSES, ConfusionResult, find_worst
from dign.evaluation.image_record import ImageRecord
from dign.evaluation.promises import PromiseScores
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_parts import ConditionResult, CorruptionResult, Summary
from dign.evaluation.result_pools import PooledCalibration, TemperatureResult
from dign.evaluation.results import Results
from dign.metrics import (
    Calibration,
    Confusion,
    UncertaintyScores,
    mean_corruption_accuracy,
    noise_corruption_accuracy,
)
from dign.metrics.aggregation import MCA_N_CORRUPTIONS, pool

Counts = dict[tuple[str, int], Calibration]
"""Calibration by corruption and severity; the clean images have severity 0."""
Confusions = dict[tuple[str, int], Confusion]
"""Confusion by corruption and severity, where there are few enough classes."""
Uncertainties = Mapping[tuple[str, int], UncertaintyScores]
"""Proper scores and the like by corruption and severity."""
CLEAN = ("clean", 0)


def make_results(
    counts: Counts,
    run: RunInfo,
    evaluation: EvaluationInfo,
    classes: Sequence[str],
    temperature: TemperatureResult | None = None,
    confusions: Mapping[tuple[str, int], Confusion] | None = None,
    uncertainty: Uncertainties | None = None,
    images: ImageRecord | None = None,
    promises: Mapping[tuple[str, int], PromiseScores] | None = None,
) -> Results:
    """Results from the counts of the clean images and of every corruption."""
    clean, corrupted = separate_clean(counts)
    known, kept = uncertainty or {}, promises or {}
    return Results(
        run,
        evaluation,
        tuple(classes),
        ConditionResult.of(clean, known.get(CLEAN), kept.get(CLEAN)),
        tabulate(corrupted, known, kept),
        summarize(counts),
        temperature,
        choose_confusions(counts, confusions or {}, len(classes)),
        images,
    )


def choose_confusions(
    counts: Counts, confusions: Mapping[tuple[str, int], Confusion], classes: int
) -> tuple[ConfusionResult, ...]:
    """The confusion matrices that results have: clean, and under the condition of the lowest accuracy.

    None where there are many classes, or where the predictions are of other classes than those that have a name.
    """
    worst = find_worst({each: part.compute().accuracy for each, part in counts.items() if each != CLEAN})
    chosen = [condition for condition in (CLEAN, worst) if condition is not None and condition in confusions]
    if classes > MAX_CLASSES or any(confusions[condition].classes != classes for condition in chosen):
        return ()
    return tuple(
        ConfusionResult(name, severity, tuple(map(tuple, confusions[name, severity].compute().tolist())))
        for name, severity in chosen
    )


def separate_clean(counts: Counts) -> tuple[Calibration, Counts]:
    return counts[CLEAN], {condition: part for condition, part in counts.items() if condition != CLEAN}


def tabulate(
    corrupted: Counts,
    uncertainty: Uncertainties | None = None,
    promises: Mapping[tuple[str, int], PromiseScores] | None = None,
) -> dict[str, CorruptionResult]:
    """The scores of every corruption at every severity."""
    known, kept = uncertainty or {}, promises or {}
    conditions: dict[str, dict[int, ConditionResult]] = {}
    for (name, severity), calibration in corrupted.items():
        pair = (name, severity)
        conditions.setdefault(name, {})[severity] = ConditionResult.of(calibration, known.get(pair), kept.get(pair))
    return {name: CorruptionResult(family_of(name), severities) for name, severities in conditions.items()}


def summarize(counts: Counts) -> Summary:
    """Mean accuracies and pooled calibration."""
    clean, corrupted = separate_clean(counts)
    accuracies = {name: result.accuracies for name, result in tabulate(corrupted).items()}
    return Summary(
        clean_accuracy=clean.compute().accuracy,
        mca=mean_corruption_accuracy(accuracies),
        mca_n=noise_corruption_accuracy(accuracies),
        families={
            family: mean
            for family, names in FAMILIES.items()
            if (mean := mean_corruption_accuracy(accuracies, names)) is not None
        },
        calibration=pool_calibration(counts),
        corruptions={name: tuple(by_severity) for name, by_severity in accuracies.items()},
    )


def pool_counts(counts: Counts) -> dict[str, Calibration]:
    """The predictions on the clean images, under noise, and under all corruptions, where there are any."""
    clean, corrupted = separate_clean(counts)
    pools = {"clean": clean, "noise": pool(corrupted, MCA_N_CORRUPTIONS), "all": pool(corrupted)}
    return {key: part for key, part in pools.items() if part is not None}


def pool_calibration(counts: Counts) -> PooledCalibration:
    """Scores of the clean images, of noise, and of all corruptions."""
    return PooledCalibration(**{key: part.compute() for key, part in pool_counts(counts).items()})
