"""Scores and the sums they follow from, as results files have them: checked readers and writers."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dign.evaluation.json_values import as_object, fail, is_count, is_number
from dign.metrics import Calibration, CalibrationScores
from dign.metrics.uncertainty import UNCERTAINTY, UncertaintyScores

SCORES = tuple(spec.name for spec in fields(CalibrationScores))
BINS = ("counts", "correct", "deviation", "square")


def read_scores(given: dict[str, Any], where: str) -> CalibrationScores:
    """The scores in a condition or a pool."""
    for key in ("accuracy", "ece", "rmse", "oe"):
        if not is_number(given.get(key)) or not -1e-9 <= given[key] <= 100 + 1e-9:
            fail(f"{where}: {key} is not a percentage")
    if given.get("sharpness") is not None and not is_number(given["sharpness"]):
        fail(f"{where}: sharpness is neither a number nor null")
    if not is_count(given.get("count", 0)):
        fail(f"{where}: count is not a whole number")
    return CalibrationScores(**{"count": 0, "sharpness": None} | {key: given[key] for key in SCORES if key in given})


def scores_to_json(scores: CalibrationScores) -> dict[str, Any]:
    return {key: getattr(scores, key) for key in SCORES}


def read_bins(value: Any, where: str) -> Calibration:
    """The sums per confidence bin of a condition or a pool."""
    bins = as_object(value, f"{where}: bins")
    columns = [bins.get(key) for key in BINS]
    if not all(isinstance(column, list) for column in columns) or len({len(column) for column in columns}) != 1:  # type: ignore[arg-type]
        fail(f"{where}: its bins are not four lists of one length")
    counts, correct, deviation, square = (list(column or []) for column in columns)
    if not all(map(is_count, counts + correct)) or not all(map(is_number, deviation + square)):
        fail(f"{where}: its bins hold something that is not a number")
    if not 0 < sum(counts) < 2**63 or any(right > count for right, count in zip(correct, counts, strict=True)):
        fail(f"{where}: its bins do not add up")
    return Calibration.from_state(bins)


def bins_to_json(calibration: Calibration) -> dict[str, list[float]]:
    """The sums per confidence bin as a file has them."""
    state = calibration.state()
    return {key: state[key].tolist() for key in BINS}


def read_uncertainty(value: Any, where: str) -> UncertaintyScores:
    """The proper scores and the like of a condition or a pool."""
    given = as_object(value, where)
    optional = ("auroc", "aupr", "fpr95")
    for key in UNCERTAINTY:
        if not (is_number(given.get(key)) or (key in optional and given.get(key) is None)):
            fail(f"{where}: {key} is not a number")
    return UncertaintyScores(**{key: given.get(key) for key in UNCERTAINTY})  # type: ignore[arg-type]
