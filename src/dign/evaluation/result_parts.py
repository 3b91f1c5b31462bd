"""The measured parts of a results file as dataclasses, each with its checked reader and its writer.

Results files may be untrusted: `from_json` takes nothing for granted, and cleans every text that may be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from dign.core.text import clean_text
from dign.corruptions.sets import FURTHER_SETS, SETS
from dign.evaluation.json_values import as_object, fail, is_count, is_number, is_percentage
from dign.evaluation.promises import PromiseScores
from dign.metrics import Calibration, CalibrationScores
from dign.metrics.aggregation import MCA_N_CORRUPTIONS, counts_in_mca, is_complete, name_mean, pool
from dign.metrics.uncertainty import UNCERTAINTY, UncertaintyScores, mean_scores

SCORES = tuple(spec.name for spec in fields(CalibrationScores))
BINS = ("counts", "correct", "deviation", "square")
POOLS = ("clean", "noise", "all")


@dataclass(frozen=True)
class ConditionResult(CalibrationScores):
    """The scores of one condition (`accuracy`, `ece`, ...), and the sums they follow from, for pooling and
    reliability diagrams.

    Attributes:
        calibration: The sums.
        uncertainty: Proper scores, selective prediction and the like; None in files of older versions.
        promises: How promises made on held-out images hold; None where the model has none.
    """

    calibration: Calibration
    uncertainty: UncertaintyScores | None = None
    promises: PromiseScores | None = None

    @classmethod
    def of(
        cls,
        calibration: Calibration,
        uncertainty: UncertaintyScores | None = None,
        promises: PromiseScores | None = None,
    ) -> ConditionResult:
        """The scores of what was counted."""
        return cls(**asdict(calibration.compute()), calibration=calibration, uncertainty=uncertainty, promises=promises)

    @classmethod
    def from_json(cls, value: Any, where: str) -> ConditionResult:
        condition = as_object(value, where)
        scores = read_scores(condition, where)
        sums = read_bins(condition.get("bins"), where)
        if abs(scores.accuracy - sums.compute().accuracy) > 1e-3:
            fail(f"{where}: its accuracy does not follow from its bins")
        given = condition.get("uncertainty")
        uncertainty = None if given is None else read_uncertainty(given, f"{where}: uncertainty")
        kept = condition.get("promises")
        promises = None if kept is None else PromiseScores.from_json(kept, f"{where}: promises")
        own = {**asdict(scores), "count": sums.count}
        return cls(**own, calibration=sums, uncertainty=uncertainty, promises=promises)

    def to_json(self) -> dict[str, Any]:
        value = {**scores_to_json(self), "bins": bins_to_json(self.calibration)}
        value |= {"uncertainty": asdict(self.uncertainty)} if self.uncertainty else {}
        return {**value, "promises": self.promises.to_json()} if self.promises else value


@dataclass(frozen=True)
class CorruptionResult:
    """One corruption: its family, and its conditions by severity, 1 to 5."""

    family: str
    severities: dict[int, ConditionResult]

    @cached_property
    def accuracies(self) -> dict[int, float]:
        """Accuracy in percent by severity."""
        return {severity: condition.accuracy for severity, condition in self.severities.items()}

    @property
    def accuracy(self) -> float:
        """Mean accuracy over the severities, in percent."""
        return sum(self.accuracies.values()) / len(self.accuracies)

    @classmethod
    def from_json(cls, value: Any, where: str, bins: int) -> CorruptionResult:
        corruption = as_object(value, where)
        if not isinstance(corruption.get("family"), str):
            fail(f"{where}.family is missing")
        given = as_object(corruption.get("severities"), f"{where}.severities")
        if not given:
            fail(f"{where} has no severities")
        severities = {}
        for severity, condition in sorted(given.items()):
            if severity not in {"1", "2", "3", "4", "5"}:
                fail(f"{where} has a severity {clean_text(severity)!r}, which is not one of 1 to 5")
            severities[int(severity)] = ConditionResult.from_json(condition, f"{where}, severity {severity}")
            if severities[int(severity)].calibration.bins != bins:
                fail(f"{where}, severity {severity}, has another number of bins than clean")
        return cls(clean_text(corruption["family"]), severities)

    def to_json(self) -> dict[str, Any]:
        return {
            "family": self.family,
            "severities": {str(severity): condition.to_json() for severity, condition in self.severities.items()},
        }


@dataclass(frozen=True)
class PooledCalibration:
    """Scores of predictions pooled over conditions before binning; Gaussian noise is left out.

    Attributes:
        clean: The clean images.
        noise: Under the noises of mCA-N; None where none was measured.
        all: Under the corruptions of mCA; None where none was measured.
    """

    clean: CalibrationScores
    noise: CalibrationScores | None = None
    all: CalibrationScores | None = None

    @classmethod
    def from_json(cls, value: Any, where: str) -> PooledCalibration:
        given = as_object(value, where)
        parts = {}
        for key in ("clean", "noise", "all"):
            if given.get(key) is not None:
                parts[key] = read_scores(as_object(given[key], f"{where}.{key}"), f"{where}.{key}")
        if "clean" not in parts:
            fail(f"{where}.clean is missing")
        return cls(**parts)

    def to_json(self) -> dict[str, Any]:
        parts = {"clean": self.clean, "noise": self.noise, "all": self.all}
        return {key: scores_to_json(part) if part else None for key, part in parts.items()}


@dataclass(frozen=True)
class PooledUncertainty:
    """Proper scores and the like: of the clean images, and their means over corruptions and severities as of mCA.

    Attributes:
        clean: The clean images.
        noise: The mean over the noises of mCA-N; None where none was measured.
        all: The mean over the corruptions of mCA; None where none was measured.
    """

    clean: UncertaintyScores
    noise: UncertaintyScores | None = None
    all: UncertaintyScores | None = None

    @classmethod
    def from_json(cls, value: Any, where: str) -> PooledUncertainty:
        given = as_object(value, where)
        parts = {
            key: read_uncertainty(given[key], f"{where}.{key}")
            for key in ("clean", "noise", "all")
            if given.get(key) is not None
        }
        if "clean" not in parts:
            fail(f"{where}.clean is missing")
        return cls(**parts)

    def to_json(self) -> dict[str, Any]:
        parts = {"clean": self.clean, "noise": self.noise, "all": self.all}
        return {key: asdict(part) if part else None for key, part in parts.items()}


@dataclass(frozen=True)
class Summary:
    """Means over conditions, in percent.

    Attributes:
        clean_accuracy: Accuracy on the clean images.
        mca: Mean accuracy over corruptions and severities without Gaussian noise; None where there are none.
        mca_n: The same over impulse, shot and speckle noise.
        families: The same by family.
        calibration: Calibration, pooled.
        corruptions: The severities at which each corruption was measured; Gaussian noise is not part of the means.
    """

    clean_accuracy: float
    mca: float | None
    mca_n: float | None
    families: dict[str, float]
    calibration: PooledCalibration
    corruptions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether `mca` is mCA: the mean over all eighteen corruptions and five severities."""
        return is_complete(self.corruptions)

    @property
    def noise_complete(self) -> bool:
        """Whether `mca_n` is mCA-N: the mean over impulse, shot and speckle noise and five severities."""
        return is_complete(self.corruptions, MCA_N_CORRUPTIONS)

    @property
    def mca_name(self) -> str:
        """What to call `mca`: "mCA", or "mean over fog, snow (2 corruptions)"."""
        return name_mean(self.corruptions)

    @property
    def mca_n_name(self) -> str:
        """What to call `mca_n`: "mCA-N", or "mean over shot_noise (1 corruption)"."""
        return name_mean(self.corruptions, MCA_N_CORRUPTIONS)

    @property
    def goes_beyond_noise(self) -> bool:
        """Whether `mca` is about more than noise; under noise alone it is `mca_n` again."""
        return any(family != "noise" for family in self.families)

    @classmethod
    def from_json(cls, value: Any, corruptions: Mapping[str, Iterable[int]]) -> Summary:
        """The means of a file that has these corruptions at these severities."""
        given = as_object(value, "summary")
        means = {}
        for key in ("clean_accuracy", "mca", "mca_n"):
            means[key] = given.get(key)
            if means[key] is not None and not is_percentage(means[key]):
                fail(f"summary.{key} is not a percentage")
        if means["clean_accuracy"] is None:
            fail("summary.clean_accuracy is missing")
        families = as_object(given.get("families", {}), "summary.families")
        if not all(value is None or is_percentage(value) for value in families.values()):
            fail("summary.families holds something that is not a percentage")
        return cls(
            **means,  # type: ignore[arg-type]
            families={clean_text(family): mean for family, mean in families.items() if mean is not None},
            calibration=PooledCalibration.from_json(given.get("calibration"), "summary.calibration"),
            corruptions={name: tuple(severities) for name, severities in corruptions.items()},
        )

    def to_json(self) -> dict[str, Any]:
        means = {"clean_accuracy": self.clean_accuracy, "mca": self.mca, "mca_n": self.mca_n}
        return {**means, "families": dict(self.families), "calibration": self.calibration.to_json()}


@dataclass(frozen=True)
class TemperatureResult:
    """A fitted temperature, and the pooled scores at it.

    Attributes:
        value: The temperature.
        calibration: The scores of `Summary.calibration` at this temperature.
        split: Split that it was fitted on.
        images: Number of images that it was fitted on.
        nll: Their mean log loss, "before" and "after".
        uncertainty: Proper scores and the like at this temperature; None in files of older versions.
    """

    value: float
    calibration: PooledCalibration
    split: str | None = None
    images: int | None = None
    nll: dict[str, float] | None = None
    uncertainty: PooledUncertainty | None = None

    @classmethod
    def from_json(cls, value: Any) -> TemperatureResult:
        given = as_object(value, "temperature")
        if not (is_number(given.get("value")) and given["value"] > 0):
            fail("temperature.value is not a positive number")
        split, images, nll = (given.get(key) for key in ("split", "images", "nll"))
        if nll is not None and not (isinstance(nll, dict) and all(map(is_number, nll.values()))):
            fail("temperature.nll is not two numbers")
        return cls(
            value=given["value"],
            calibration=PooledCalibration.from_json(given, "temperature"),
            split=clean_text(split) if isinstance(split, str) else None,
            images=images if is_count(images) else None,
            nll={clean_text(key): number for key, number in nll.items()} if nll else None,
            uncertainty=_read_pooled(given.get("uncertainty"), "temperature.uncertainty"),
        )

    def to_json(self) -> dict[str, Any]:
        scores = self.uncertainty.to_json() if self.uncertainty else None
        fitted = {"split": self.split, "images": self.images, "nll": self.nll, "uncertainty": scores}
        known = {key: value for key, value in fitted.items() if value is not None}
        return {"value": self.value, **self.calibration.to_json(), **known}


def score_sets(corruptions: Mapping[str, CorruptionResult]) -> dict[str, CalibrationScores]:
    """Scores pooled over every set of corruptions beyond the common ones that was measured as a whole.

    All conditions are of the same images, so that the accuracy is the mean over corruptions and severities too.
    """
    counts = {
        (name, severity): condition.calibration
        for name, corruption in corruptions.items()
        for severity, condition in corruption.severities.items()
    }
    measured = [name for name in FURTHER_SETS if set(SETS[name]) <= set(corruptions)]
    pools = {name: pool(counts, SETS[name]) for name in measured}
    return {name: total.compute() for name, total in pools.items() if total is not None}


@dataclass(frozen=True)
class CalibratorResult:
    """The calibrator that is part of the model, and the scores without it; all other scores are with it.

    Attributes:
        kind: "temperature", "vector" or "histogram".
        value: The temperature, where it is one.
        on: How the images that it was fitted on were shown: "clean", "noise" or "both".
        data: What they are of.
        images: How many.
        calibration: The scores of `Summary.calibration` without the calibrator; None where only part was measured.
        uncertainty: Proper scores and the like without it; None likewise.
        bins: The sums per confidence bin without it, for reliability diagrams: "clean", "noise" and "all"; empty
            likewise, and in files of older versions.
    """

    kind: str
    value: float | None
    on: str
    data: str
    images: int
    calibration: PooledCalibration | None = None
    uncertainty: PooledUncertainty | None = None
    bins: Mapping[str, Calibration] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """'temperature 0.64', or the name of the kind."""
        return f"temperature {self.value:.2f}" if self.value is not None else f"{self.kind} calibration"

    @classmethod
    def from_json(cls, value: Any) -> CalibratorResult:
        given = as_object(value, "calibrator")
        if not all(isinstance(given.get(key), str) for key in ("kind", "on", "data")):
            fail("calibrator does not say what it is")
        temperature, before = given.get("value"), given.get("before")
        if not is_count(given.get("images")) or not (temperature is None or is_number(temperature)):
            fail("calibrator lacks a number")
        return cls(
            kind=clean_text(given["kind"]),
            value=temperature,
            on=clean_text(given["on"]),
            data=clean_text(given["data"]),
            images=given["images"],
            calibration=None if before is None else PooledCalibration.from_json(before, "calibrator.before"),
            uncertainty=_read_pooled(given.get("uncertainty"), "calibrator.uncertainty"),
            bins={
                key: read_bins(bins, f"calibrator.bins.{key}")
                for key, bins in as_object(given.get("bins", {}), "calibrator.bins").items()
                if key in POOLS
            },
        )

    def to_json(self) -> dict[str, Any]:
        about = {key: getattr(self, key) for key in ("kind", "value", "on", "data", "images")}
        before = self.calibration.to_json() if self.calibration else None
        value = {**about, "before": before, "uncertainty": self.uncertainty.to_json() if self.uncertainty else None}
        return {**value, "bins": {key: bins_to_json(bins) for key, bins in self.bins.items()}} if self.bins else value


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


def read_uncertainty(value: Any, where: str) -> UncertaintyScores:
    """The proper scores and the like of a condition or a pool."""
    given = as_object(value, where)
    optional = ("auroc", "aupr", "fpr95")
    for key in UNCERTAINTY:
        if not (is_number(given.get(key)) or (key in optional and given.get(key) is None)):
            fail(f"{where}: {key} is not a number")
    return UncertaintyScores(**{key: given.get(key) for key in UNCERTAINTY})  # type: ignore[arg-type]


def _read_pooled(value: Any, where: str) -> PooledUncertainty | None:
    return None if value is None else PooledUncertainty.from_json(value, where)


def pool_uncertainty(scores: Mapping[tuple[str, int], UncertaintyScores]) -> PooledUncertainty | None:
    """Scores of the clean images, and their means over noise and over all corruptions; None where clean has none."""
    if ("clean", 0) not in scores:
        return None
    chosen = [(name, part) for (name, _), part in scores.items() if name != "clean" and counts_in_mca(name)]
    return PooledUncertainty(
        clean=scores["clean", 0],
        noise=mean_scores([part for name, part in chosen if name in MCA_N_CORRUPTIONS]),
        all=mean_scores([part for _, part in chosen]),
    )
