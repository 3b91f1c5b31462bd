"""Metrics: accuracy, confusion matrix, calibration, proper scores, selective prediction, temperature, and means.

Every metric is a class with `update`, `compute`, `reset`, `merge`, `to` and `state`/`from_state`, and a function
beside it. The functions `nll, brier, adaptive_ece, classwise_ece, debiased_rmse, smooth_ece, aurc, augrc,
accuracy_at_coverage, auroc, aupr, fpr95, balanced_accuracy` are here; `accuracy`, `calibration` and `confusion`, which
are named like their modules, in those modules and as `dign.accuracy`, `dign.calibration`, `dign.confusion`.
"""

from dign.metrics.accuracies import Accuracy, BalancedAccuracy, accuracy, balanced_accuracy
from dign.metrics.aggregation import counts_in_mca, mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.calibration_bins import Calibration, CalibrationScores, calibration
from dign.metrics.calibration_errors import (
    AdaptiveECE,
    DebiasedRMSE,
    SmoothECE,
    adaptive_ece,
    debiased_rmse,
    smooth_ece,
)
from dign.metrics.confusions import Confusion, confusion
from dign.metrics.detection import (
    AUPR,
    AUROC,
    FPR95,
    DetectionScores,
    aupr,
    auroc,
    detect,
    fpr95,
    outlier_score,
)
from dign.metrics.proper_scores import NLL, Brier, BrierScores, ClasswiseECE, brier, classwise_ece, nll
from dign.metrics.selective import (
    AUGRC,
    AURC,
    AccuracyAtCoverage,
    accuracy_at_coverage,
    augrc,
    aurc,
    risk_coverage,
)
from dign.metrics.temperature import Temperature, TemperatureFit, apply_temperature, fit_temperature
from dign.metrics.uncertainty import Uncertainty, UncertaintyScores

__all__ = [
    "AUGRC",
    "AUPR",
    "AURC",
    "AUROC",
    "FPR95",
    "NLL",
    "Accuracy",
    "AccuracyAtCoverage",
    "AdaptiveECE",
    "BalancedAccuracy",
    "Brier",
    "BrierScores",
    "Calibration",
    "CalibrationScores",
    "ClasswiseECE",
    "Confusion",
    "DebiasedRMSE",
    "DetectionScores",
    "SmoothECE",
    "Temperature",
    "TemperatureFit",
    "Uncertainty",
    "UncertaintyScores",
    "accuracy",
    "accuracy_at_coverage",
    "adaptive_ece",
    "apply_temperature",
    "augrc",
    "aupr",
    "aurc",
    "auroc",
    "balanced_accuracy",
    "brier",
    "calibration",
    "classwise_ece",
    "confusion",
    "counts_in_mca",
    "debiased_rmse",
    "detect",
    "fit_temperature",
    "fpr95",
    "mean_corruption_accuracy",
    "nll",
    "noise_corruption_accuracy",
    "outlier_score",
    "risk_coverage",
    "smooth_ece",
]
