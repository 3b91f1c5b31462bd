"""Metrics: accuracy, confusion matrix, calibration, temperature scaling, and means over corruptions.

Every metric is a class with `update`, `compute`, `reset`, `merge`, `to` and `state`/`from_state`, and a function
beside it.
"""

from dign.metrics.accuracy import Accuracy, accuracy
from dign.metrics.aggregation import counts_in_mca, mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.calibration import Calibration, CalibrationScores, calibration
from dign.metrics.confusion import Confusion, confusion
from dign.metrics.temperature import Temperature, TemperatureFit, apply_temperature, fit_temperature

__all__ = [
    "Accuracy",
    "Calibration",
    "CalibrationScores",
    "Confusion",
    "Temperature",
    "TemperatureFit",
    "accuracy",
    "apply_temperature",
    "calibration",
    "confusion",
    "counts_in_mca",
    "fit_temperature",
    "mean_corruption_accuracy",
    "noise_corruption_accuracy",
]
