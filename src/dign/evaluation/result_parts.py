"""The measured parts of a results file as dataclasses, each with its checked reader and its writer.

Results files may be untrusted: `from_json` takes nothing for granted, and cleans every text that may be shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from dign.core.text import clean_text
from dign.corruptions.sets import FURTHER_SETS, SETS
from dign.evaluation.json_values import as_object, fail, is_percentage
from dign.evaluation.promises import PromiseScores
from dign.evaluation.result_pools import PooledCalibration
from dign.evaluation.result_scores import bins_to_json, read_bins, read_scores, read_uncertainty, scores_to_json
from dign.metrics import Calibration, CalibrationScores
from dign.metrics.aggregation import MCA_N_CORRUPTIONS, is_complete, name_mean, pool
from dign.metrics.uncertainty import UncertaintyScores


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
