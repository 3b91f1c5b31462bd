"""What a results file must look like (docs/results.md), checked by hand: the file may be anybody's."""

from __future__ import annotations

import unicodedata
from typing import Any

SCHEMA = 1
MAX_TEXT = 120
SCORES = ("accuracy", "ece", "rmse", "oe")


class BrokenResults(ValueError):
    """Why a results file cannot be used: a phrase that completes 'RUN/results.json is broken: ...'."""


def clean_text(value: object) -> str:
    """A string fit to be shown: no control or direction-changing characters, no endless length.

    Whoever puts it on a page, in a terminal or in a table still has to escape it for that place.
    """
    text = "".join(" " if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"} else char for char in str(value))
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"


def check_results(value: Any) -> dict[str, Any]:
    """Return the results as they are if every field that the report reads is there and makes sense."""
    _dictionary(value, "the file")
    if value.get("schema") != SCHEMA:
        raise BrokenResults(f"its schema is {value.get('schema')!r}, and this version reads schema {SCHEMA}")
    run = _dictionary(value.get("run"), "run")
    for key in ("name", "method", "title", "model", "data"):
        if not isinstance(run.get(key), str) or not clean_text(run[key]):
            raise BrokenResults(f"run.{key} is missing or not a text")
    if not _is_count(run.get("seed")):
        raise BrokenResults("run.seed is missing or not a whole number")
    _dictionary(value.get("evaluation"), "evaluation")
    if not isinstance(value.get("classes", []), list):
        raise BrokenResults("classes is not a list")
    _check_condition(value.get("clean"), "clean")
    _check_corruptions(_dictionary(value.get("corruptions"), "corruptions"), len(value["clean"]["bins"]["counts"]))
    _check_summary(_dictionary(value.get("summary"), "summary"), value["clean"])
    if value.get("temperature") is not None:
        _check_temperature(_dictionary(value["temperature"], "temperature"))
    return value


def _check_temperature(temperature: dict[str, Any]) -> None:
    if not (is_number(temperature.get("value")) and temperature["value"] > 0):
        raise BrokenResults("temperature.value is not a positive number")
    _check_pooled(temperature, "temperature")


def _check_corruptions(corruptions: dict[str, Any], bins: int) -> None:
    for name, corruption in corruptions.items():
        where = f"corruptions.{clean_text(name)}"
        _dictionary(corruption, where)
        if not isinstance(corruption.get("family"), str):
            raise BrokenResults(f"{where}.family is missing")
        severities = _dictionary(corruption.get("severities"), f"{where}.severities")
        if not severities:
            raise BrokenResults(f"{where} has no severities")
        for severity, condition in severities.items():
            if severity not in {"1", "2", "3", "4", "5"}:
                raise BrokenResults(f"{where} has a severity {clean_text(severity)!r}, which is not one of 1 to 5")
            _check_condition(condition, f"{where}, severity {severity}")
            if len(condition["bins"]["counts"]) != bins:
                raise BrokenResults(f"{where}, severity {severity}, has another number of bins than clean")


def _check_condition(value: Any, where: str) -> None:
    condition = _dictionary(value, where)
    _check_scores(condition, where)
    bins = _dictionary(condition.get("bins"), f"{where}: bins")
    columns = [bins.get(key) for key in ("counts", "correct", "deviation", "square")]
    if not all(isinstance(column, list) for column in columns) or len({len(column) for column in columns}) != 1:
        raise BrokenResults(f"{where}: its bins are not four lists of one length")
    counts, correct, deviation, square = columns
    if not all(map(_is_count, counts + correct)) or not all(map(is_number, deviation + square)):
        raise BrokenResults(f"{where}: its bins hold something that is not a number")
    if sum(counts) == 0 or any(right > count for right, count in zip(correct, counts, strict=True)):
        raise BrokenResults(f"{where}: its bins do not add up")
    if abs(condition["accuracy"] - 100 * sum(correct) / sum(counts)) > 1e-3:
        raise BrokenResults(f"{where}: its accuracy does not follow from its bins")


def _check_scores(scores: dict[str, Any], where: str) -> None:
    for key in SCORES:
        if not is_number(scores.get(key)) or not -1e-9 <= scores[key] <= 100 + 1e-9:
            raise BrokenResults(f"{where}: {key} is not a percentage")
    if scores.get("sharpness") is not None and not is_number(scores["sharpness"]):
        raise BrokenResults(f"{where}: sharpness is neither a number nor null")


def _check_summary(summary: dict[str, Any], clean: dict[str, Any]) -> None:
    for key in ("clean_accuracy", "mca", "mca_n"):
        value = summary.get(key)
        if value is not None and not (is_number(value) and 0 <= value <= 100):
            raise BrokenResults(f"summary.{key} is not a percentage")
    if summary.get("clean_accuracy") is None or abs(summary["clean_accuracy"] - clean["accuracy"]) > 1e-3:
        raise BrokenResults("summary.clean_accuracy is not the accuracy of the clean images")
    _check_pooled(_dictionary(summary.get("calibration"), "summary.calibration"), "summary.calibration")


def _check_pooled(calibration: dict[str, Any], where: str) -> None:
    for key in ("clean", "noise", "all"):
        if calibration.get(key) is not None:
            _check_scores(_dictionary(calibration[key], f"{where}.{key}"), f"{where}.{key}")
    if calibration.get("clean") is None:
        raise BrokenResults(f"{where}.clean is missing")


def _dictionary(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BrokenResults(f"{where} is missing or not an object")
    return value


def is_number(value: Any) -> bool:
    """A number that a float can hold: JSON has integers of any length."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
