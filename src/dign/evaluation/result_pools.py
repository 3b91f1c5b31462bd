"""Scores pooled over conditions, and what a temperature or the model's own calibrator does to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from dign.core.text import clean_text
from dign.evaluation.json_values import as_object, fail, is_count, is_number
from dign.evaluation.result_scores import bins_to_json, read_bins, read_scores, read_uncertainty, scores_to_json
from dign.metrics import Calibration, CalibrationScores
from dign.metrics.aggregation import MCA_N_CORRUPTIONS, counts_in_mca
from dign.metrics.uncertainty import UncertaintyScores, mean_scores

POOLS = ("clean", "noise", "all")


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
