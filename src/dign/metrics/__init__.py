"""Metrics: calibration with accuracy, and means over corruptions."""

from dign.metrics.accuracy import mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.calibration import Calibration, CalibrationScores

__all__ = ["Calibration", "CalibrationScores", "mean_corruption_accuracy", "noise_corruption_accuracy"]
