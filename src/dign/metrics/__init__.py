"""Metrics: calibration with accuracy, and means over corruptions."""

from dign.metrics.calibration import Calibration, CalibrationScores

__all__ = ["Calibration", "CalibrationScores"]
