"""Means of accuracy over corruptions and severities: mCA and mCA-N."""

from collections.abc import Iterable, Mapping

from dign.corruptions import FAMILIES

EXCLUDED = "gaussian_noise"
"""Left out of every mean, because methods that train with Gaussian noise have seen it (section IV of the paper)."""

Accuracies = Mapping[str, Mapping[str, float]]
"""Accuracy in percent by corruption and severity."""


def mean_corruption_accuracy(accuracies: Accuracies, corruptions: Iterable[str] | None = None) -> float | None:
    """mCA = 1/(M J) sum over M corruptions and J severities, without gaussian_noise; None where there are none.

    >>> mean_corruption_accuracy({"fog": {"1": 80.0, "2": 60.0}, "gaussian_noise": {"1": 10.0, "2": 10.0}})
    70.0
    """
    chosen = [name for name in accuracies if name != EXCLUDED and (corruptions is None or name in corruptions)]
    values = [value for name in chosen for value in accuracies[name].values()]
    return sum(values) / len(values) if values else None


def noise_corruption_accuracy(accuracies: Accuracies) -> float | None:
    """mCA-N: mCA over the noise corruptions alone."""
    return mean_corruption_accuracy(accuracies, FAMILIES["noise"])
