"""Metrics: calibration with accuracy, temperature scaling, and means over corruptions."""

from dign.metrics.accuracy import mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.calibration import Calibration, CalibrationScores
from dign.metrics.temperature import Temperature, fit_temperature, tempered

__all__ = [
    "Calibration",
    "CalibrationScores",
    "Temperature",
    "fit_temperature",
    "mean_corruption_accuracy",
    "noise_corruption_accuracy",
    "tempered",
]
