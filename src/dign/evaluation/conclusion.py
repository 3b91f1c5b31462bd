"""From what was measured to results: how predictions are read, and what a calibrator or a temperature makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from dign.evaluation.measure import Counted, Measured, Reading, as_given
from dign.evaluation.promises import Promises
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_pools import CalibratorResult, TemperatureResult, pool_uncertainty
from dign.evaluation.results import Results
from dign.evaluation.summarize import make_results, pool_calibration, pool_counts
from dign.metrics import TemperatureFit, apply_temperature
from dign.runs.calibrator import Calibrator, is_same_transform


def choose_readings(own: Calibrator | None, temperature: float | None) -> list[Reading]:
    """How predictions are read: through the model's own calibrator, if it has one; as given; and at a temperature."""
    readings: list[Reading] = [own.calibrate, as_given] if own else [as_given]
    return readings + ([] if temperature is None else [partial(apply_temperature, temperature=temperature)])


def promises_of(own: Calibrator | None) -> Promises | None:
    """What the calibrator's held-out images let the model promise."""
    return Promises.of(own.held_out) if own and own.held_out else None


def conclude(
    measured: Measured,
    about: RunInfo,
    info: EvaluationInfo,
    classes: Sequence[str],
    own: Calibrator | None,
    promises: Promises | None,
    fit: TemperatureFit | float | None,
    split: str | None = None,
) -> Results:
    """The results of what was measured with the readings of `choose_readings`; `split` is what `fit` was fitted on."""
    results = make_results(
        measured.counts,
        about,
        info,
        classes,
        describe_temperature(fit, measured.others[-1], split) if fit else None,
        measured.confusions,
        measured.uncertainty,
        measured.images(calibrated=own is not None),
        measured.promises,
    )
    fitted = describe_calibrator(own, measured.others[0]) if own else None
    return replace(results, calibrator=fitted, promises=promises)


def describe_calibrator(calibrator: Calibrator, raw: Counted | None) -> CalibratorResult:
    """The `calibrator` entry of results, with what was counted without it."""
    about = (calibrator.kind, calibrator.temperature, calibrator.on, calibrator.data, calibrator.images)
    if raw is None:
        return CalibratorResult(*about)
    pooled, scores = pool_calibration(raw.counts), pool_uncertainty(raw.uncertainty)
    return CalibratorResult(*about, pooled, scores, pool_counts(raw.counts))


def is_of_calibrator(results: Results, calibrator: Calibrator | None) -> bool:
    """Whether results were measured with the calibrator that the model has: others would describe another model."""
    then = results.calibrator
    if then is None or calibrator is None:
        return then is None and calibrator is None
    now = describe_calibrator(calibrator, None)
    if then.value is not None and now.value is not None and is_same_transform(float(then.value), now.value):
        now = replace(now, value=then.value)
    return replace(then, calibration=None, uncertainty=None, bins={}) == now


def describe_temperature(fit: TemperatureFit | float, counted: Counted, split: str | None = None) -> TemperatureResult:
    """The `temperature` entry of results; `split` is what it was fitted on."""
    pooled, scores = pool_calibration(counted.counts), pool_uncertainty(counted.uncertainty)
    if not isinstance(fit, TemperatureFit):
        return TemperatureResult(fit, pooled, split, uncertainty=scores)
    nll = {"before": fit.nll_before, "after": fit.nll_after}
    return TemperatureResult(fit.value, pooled, split, fit.images, nll, scores)
