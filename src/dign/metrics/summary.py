"""The part of a results file that follows from the counts of every condition."""

from collections.abc import Iterable
from typing import Any

from dign.corruptions import FAMILIES, NAMES
from dign.metrics.accuracy import EXCLUDED, mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.calibration import Calibration


def summarized(clean: Calibration, corrupted: dict[tuple[str, int], Calibration]) -> dict[str, Any]:
    """Scores of every condition, and the means and pooled calibrations over them."""
    families = {name: family for family, names in FAMILIES.items() for name in names}
    tables: dict[str, Any] = {}
    for (name, severity), calibration in corrupted.items():
        table = tables.setdefault(name, {"family": families[name], "severities": {}})
        table["severities"][str(severity)] = _condition(calibration)
    accuracies = {
        name: {severity: condition["accuracy"] for severity, condition in table["severities"].items()}
        for name, table in tables.items()
    }
    return {
        "clean": _condition(clean),
        "corruptions": tables,
        "summary": {
            "clean_accuracy": clean.compute().accuracy,
            "mca": mean_corruption_accuracy(accuracies),
            "mca_n": noise_corruption_accuracy(accuracies),
            "families": {
                family: mean
                for family, names in FAMILIES.items()
                if (mean := mean_corruption_accuracy(accuracies, names)) is not None
            },
            "calibration": {
                "clean": clean.compute().as_dict(),
                "noise": _pooled(corrupted, FAMILIES["noise"], clean.bins),
                "all": _pooled(corrupted, NAMES, clean.bins),
            },
        },
    }


def _condition(calibration: Calibration) -> dict[str, Any]:
    return {**calibration.compute().as_dict(), "bins": calibration.state()}


def _pooled(
    corrupted: dict[tuple[str, int], Calibration], names: Iterable[str], bins: int
) -> dict[str, float | int | None] | None:
    """Calibration over the predictions of all these corruptions together, not a mean of their calibrations."""
    pool = Calibration(bins)
    members = [part for (name, _), part in corrupted.items() if name in names and name != EXCLUDED]
    for part in members:
        pool.merge(part)
    return pool.compute().as_dict() if members else None
