"""What a report measures of confidences: calibration with and without a calibrator, proper scores, promises."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dign.evaluation.image_record import LOSSES
from dign.evaluation.promises import PromiseScores
from dign.evaluation.result_parts import ConditionResult
from dign.evaluation.result_pools import PooledCalibration
from dign.metrics import Calibration
from dign.report.analysis.quantities import ImageScore, Quantity, conditions_of, corruption_title
from dign.report.load import Run


def _pooled(where: str, score: str) -> Callable[[Run], float | None]:
    return lambda run: _score(run, run.results.calibration, where, score)


def _scaled(where: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        if run.results.calibrator:
            return _score(run, run.results.calibration, where, score)
        temperature = run.results.temperature
        return _score(run, temperature.calibration, where, score) if temperature else None

    return read


def _score(run: Run, pooled: PooledCalibration, where: str, score: str) -> float | None:
    scores = getattr(pooled, where)
    return getattr(scores, score) if scores and (where != "all" or run.results.goes_beyond_noise) else None


_SCORES = {
    "rmse": ("RMSE", "Root mean square gap between confidence and accuracy, in percent", False),
    "ece": ("ECE", "Expected calibration error: mean gap between confidence and accuracy, in percent", False),
    "oe": ("OE", "Overconfidence error: the gap where confidence is above accuracy, in percent", False),
    "sharpness": ("SH", "Sharpness: 1 / standard deviation of the confidence inside a bin", True),
}
_PLACES = {
    "clean": ("Clean {}", "clean images"),
    "noise": ("Corrupt {}-N", "impulse, shot and speckle noise pooled, as far as measured"),
    "all": ("Corrupt {}", "all corruptions that were measured but Gaussian noise pooled"),
}
CALIBRATION: dict[tuple[str, str], Quantity] = {
    (place, score): Quantity(
        f"{place}_{score}",
        pattern.format(name),
        f"{text}; {what}.",
        higher,
        _pooled(place, score),
        images=None if score == "sharpness" else ImageScore(score, conditions_of(place)),
    )
    for place, (pattern, what) in _PLACES.items()
    for score, (name, text, higher) in _SCORES.items()
}
_UNCERTAINTY = {
    "nll": ("NLL", "Mean negative log-likelihood, in nats", False),
    "brier": ("Brier", "Brier score, from 0 to 2", False),
    "brier_reliability": ("Brier reliability", "Part of the Brier score that calibration can remove", False),
    "brier_resolution": ("Brier resolution", "Part of the Brier score that telling images apart takes off it", True),
    "adaptive_ece": ("Adaptive ECE", "ECE over bins of equal mass, in percent", False),
    "classwise_ece": ("Class-wise ECE", "ECE of every class's probability, mean over classes, in percent", False),
    "debiased_rmse": ("Debiased RMSE", "Calibration error without the bias of few images, in percent", False),
    "smooth_ece": ("Smooth ECE", "Calibration error without bins, in percent", False),
    "aurc": ("AURC", "Area under the risk-coverage curve, in percent", False),
    "augrc": ("AUGRC", "Mean risk of an undetected error over all coverages, in percent", False),
    "accuracy_at_80": ("Acc. at 80 %", "Accuracy on the 80 % with the highest confidence, in percent", True),
    "auroc": ("AUROC", "How well confidence tells right from wrong, in percent; 50 is chance", True),
    "aupr": ("AUPR", "Average precision of the right answers in the order of confidence, in percent", True),
    "fpr95": ("FPR95", "Wrong answers accepted with 95 % of the right ones, in percent", False),
}
_DECIMALS = {"nll": 3, "brier": 3, "brier_reliability": 3, "brier_resolution": 3, "aurc": 2, "augrc": 2}
UNCERTAINTY_PLACES = {
    "clean": ("Clean {}", "clean images"),
    "noise": ("Noise {}", "mean over impulse, shot and speckle noise and their severities, as far as measured"),
    "all": ("All {}", "mean over all corruptions that were measured but Gaussian noise"),
}


def _uncertainty(where: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        pooled = run.results.uncertainty
        part = getattr(pooled, where) if pooled and (where != "all" or run.results.goes_beyond_noise) else None
        return getattr(part, score) if part else None

    return read


UNCERTAINTY: dict[tuple[str, str], Quantity] = {
    (place, score): Quantity(
        f"{place}_{score}",
        pattern.format(name),
        f"{text}; {what}.",
        higher,
        _uncertainty(place, score),
        decimals=_DECIMALS.get(score, 1),
        images=ImageScore(score, conditions_of(place), pool=place) if score in LOSSES else None,
    )
    for place, (pattern, what) in UNCERTAINTY_PLACES.items()
    for score, (name, text, higher) in _UNCERTAINTY.items()
}
"""Proper scores and the like: of clean images, and means over corruptions."""


def corruption_uncertainty(name: str, score: str) -> Quantity:
    """A score of `UncertaintyScores` under one corruption, the mean over its severities."""

    def read(run: Run) -> float | None:
        corruption = run.results.corruptions.get(name)
        found = [each.uncertainty for each in corruption.severities.values()] if corruption else []
        values = [getattr(scores, score) for scores in found if scores]
        present = [value for value in values if value is not None]
        return sum(present) / len(present) if present else None

    label, text, higher = _UNCERTAINTY[score]
    title = f"{corruption_title(name)}: {label}"
    help = f"{text}; under {corruption_title(name).lower()}, mean over severities."
    decimals = UNCERTAINTY["clean", score].decimals
    return Quantity(f"{name}_{score}", title, help, higher, read, decimals)


UNCERTAINTY_SCORES = tuple(_UNCERTAINTY)
_PROMISES = {
    "error": (
        "wrong among the answers",
        "Wrong answers, of those that promise an error of 5 %, in percent",
        False,
    ),
    "answered": ("answered", "Images that are answered under that promise, in percent", True),
    "coverage": (
        "true class in its set",
        "Adaptive sets that promise 90 % and hold the true class, in percent",
        True,
    ),
    "size": ("size of sets", "Classes in such a set", False),
}
PROMISES = tuple(_PROMISES)


def promise_kept(name: str, key: str) -> Quantity:
    """How a promise is kept under one corruption, over all its severities; "clean" are the clean images."""

    def read(run: Run) -> float | None:
        corruption = run.results.corruptions.get(name)
        found = [run.results.clean] if name == "clean" else list(corruption.severities.values()) if corruption else []
        return read_promise(found, key)

    label, text, higher = _PROMISES[key]
    return Quantity(f"{name}_promise_{key}", f"{corruption_title(name)}: {label}", f"{text}.", higher, read)


def read_promise(conditions: Sequence[ConditionResult], key: str) -> float | None:
    """How one of `PROMISES` is kept under several conditions together; None where it was not made."""
    scores = [condition.promises for condition in conditions if condition.promises]
    if not scores:
        return None
    value = getattr(PromiseScores.pool(scores), key)
    return value["adaptive"] if isinstance(value, dict) else value


def _raw(where: str, score: str) -> Callable[[Run], float | None]:
    def read(run: Run) -> float | None:
        own = run.results.calibrator
        pooled = own.calibration if own else run.results.calibration
        return _score(run, pooled, where, score) if pooled else None

    return read


RAW: dict[tuple[str, str], Quantity] = {
    (place, score): replace(
        plain,
        read=_raw(place, score),
        images=None if score == "sharpness" else ImageScore(score, conditions_of(place), raw=True),
    )
    for (place, score), plain in CALIBRATION.items()
}
"""Calibration as training leaves it, before the calibrator that is part of a model: what the paper measures."""
TEMPERATURE = Quantity(
    "temperature",
    "T",
    "Temperature fitted on the validation images: above 1 the model was too sure of itself.",
    None,
    lambda run: _temperature(run),
    decimals=2,
)


def _temperature(run: Run) -> float | None:
    own, fitted = run.results.calibrator, run.results.temperature
    return own.value if own else fitted.value if fitted else None


SCALED: dict[tuple[str, str], Quantity] = {
    (place, score): Quantity(
        f"{plain.key}_tempered",
        f"{plain.label} at T",
        f"{plain.help[:-1]}, with the fitted temperature.",
        plain.higher_is_better,
        _scaled(place, score),
    )
    for (place, score), plain in CALIBRATION.items()
}


def severity_error(severity: int, names: tuple[str, ...], label: str) -> Quantity:
    """ECE of the predictions under the corruptions `names` at one severity, pooled; severity 0 is clean."""

    def read(run: Run) -> float | None:
        if severity == 0:
            return run.results.clean.ece
        corruptions = run.results.corruptions
        found = [corruptions[name].severities.get(severity) for name in names if name in corruptions]
        present = [condition.calibration for condition in found if condition is not None]
        if not present:
            return None
        pooled = Calibration(present[0].bins)
        for calibration in present:
            pooled.merge(calibration)
        return pooled.compute().ece

    text = "clean" if severity == 0 else f"severity {severity}"
    return Quantity(f"severity_ece_{severity}", text.capitalize(), f"ECE at {text}, pooled over {label}.", False, read)
