"""Metrics: accuracy, confusion matrix, calibration, temperature scaling, and means over corruptions.

Every metric is a class with `update`, `compute`, `reset`, `merge`, `to` and `state`/`from_state`, and a function
beside it in its module: `dign.accuracy`, `dign.calibration`, `dign.confusion`.
"""

from dign.metrics.accuracy import Accuracy
from dign.metrics.aggregation import counts_in_mca, mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.calibration import Calibration, CalibrationScores
from dign.metrics.confusion import Confusion
from dign.metrics.temperature import Temperature, TemperatureFit, apply_temperature, fit_temperature

__all__ = [
    "Accuracy",
    "Calibration",
    "CalibrationScores",
    "Confusion",
    "Temperature",
    "TemperatureFit",
    "apply_temperature",
    "counts_in_mca",
    "fit_temperature",
    "mean_corruption_accuracy",
    "noise_corruption_accuracy",
]
