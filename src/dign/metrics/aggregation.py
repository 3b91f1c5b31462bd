"""Means over corruptions and severities, mCA and mCA-N, and which corruptions they count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dign.corruptions import FAMILIES, NAMES
from dign.metrics.calibration import Calibration

EXCLUDED = "gaussian_noise"
"""Left out of every mean and pool: methods that train with Gaussian noise have seen it (section IV of the paper)."""
MCA_CORRUPTIONS: tuple[str, ...] = tuple(name for name in NAMES if name != EXCLUDED)
"""The corruptions of mCA."""
MCA_N_CORRUPTIONS: tuple[str, ...] = tuple(sorted(name for name in FAMILIES["noise"] if name != EXCLUDED))
"""The corruptions of mCA-N: the noises of mCA."""

Accuracies = Mapping[str, Mapping[int, float]]
"""Accuracy in percent by corruption and severity."""


def counts_in_mca(corruption: str) -> bool:
    """Whether a corruption is part of means and pools over corruptions.

    >>> counts_in_mca("fog"), counts_in_mca("gaussian_noise")
    (True, False)
    """
    return corruption != EXCLUDED


def mean_corruption_accuracy(accuracies: Accuracies, corruptions: Iterable[str] | None = None) -> float | None:
    """mCA = 1/(M J) sum over M corruptions and J severities, without Gaussian noise.

    Args:
        accuracies: Accuracy in percent by corruption and severity.
        corruptions: The mean over these alone; by default over all.

    Returns:
        The mean in percent; None where no corruption counts.

    >>> mean_corruption_accuracy({"fog": {1: 80.0, 2: 60.0}, "gaussian_noise": {1: 10.0, 2: 10.0}})
    70.0
    """
    chosen = [name for name in accuracies if counts_in_mca(name) and (corruptions is None or name in corruptions)]
    values = [value for name in chosen for value in accuracies[name].values()]
    return sum(values) / len(values) if values else None


def noise_corruption_accuracy(accuracies: Accuracies) -> float | None:
    """mCA-N: mCA over impulse, shot and speckle noise.

    Args:
        accuracies: Accuracy in percent by corruption and severity.

    Returns:
        The mean in percent; None where none of these noises was measured.

    >>> noise_corruption_accuracy({"fog": {1: 80.0}, "shot_noise": {1: 50.0}, "gaussian_noise": {1: 10.0}})
    50.0
    """
    return mean_corruption_accuracy(accuracies, MCA_N_CORRUPTIONS)


def pool(
    conditions: Mapping[tuple[str, int], Calibration], corruptions: Iterable[str] | None = None
) -> Calibration | None:
    """The predictions under all these corruptions together, without Gaussian noise; not a mean of their calibrations.

    Args:
        conditions: Calibration by corruption and severity.
        corruptions: Pool these alone; by default all.

    Returns:
        One calibration; None where no corruption counts.
    """
    chosen = [
        part
        for (name, _), part in conditions.items()
        if counts_in_mca(name) and (corruptions is None or name in corruptions)
    ]
    if not chosen:
        return None
    total = Calibration(chosen[0].bins)
    for part in chosen:
        total.merge(part)
    return total
