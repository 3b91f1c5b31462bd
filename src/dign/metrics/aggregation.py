"""Means over corruptions and severities, mCA and mCA-N, and which corruptions they count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dign.corruptions import FAMILIES, NAMES
from dign.metrics.calibration import Calibration

EXCLUDED = "gaussian_noise"
"""Left out of every mean and pool: methods that train with Gaussian noise have seen it (section IV of the paper)."""
MCA_CORRUPTIONS: tuple[str, ...] = tuple(name for name in NAMES if name != EXCLUDED)
"""The corruptions of mCA."""
MCA_N_CORRUPTIONS: tuple[str, ...] = tuple(sorted(name for name in FAMILIES["noise"] if name != EXCLUDED))
"""The corruptions of mCA-N: the noises of mCA."""

SEVERAL = 4
"""Corruptions that the name of a mean lists; more are only counted."""

Accuracies = Mapping[str, Mapping[int, float]]
"""Accuracy in percent by corruption and severity."""


def counts_in_mca(corruption: str) -> bool:
    """Whether a corruption is part of mCA: Gaussian noise is not, and neither is one of another set.

    >>> counts_in_mca("fog"), counts_in_mca("gaussian_noise"), counts_in_mca("ripple")
    (True, False, False)
    """
    return corruption in MCA_CORRUPTIONS


def is_complete(corruptions: Iterable[str], wanted: Iterable[str] = MCA_CORRUPTIONS) -> bool:
    """Whether a mean over these corruptions is mCA (with `MCA_N_CORRUPTIONS`: mCA-N), since none of its own is missing.

    >>> is_complete(["fog", "snow"]), is_complete(NAMES), is_complete(FAMILIES["noise"], MCA_N_CORRUPTIONS)
    (False, True, True)
    """
    return set(wanted) <= set(corruptions)


def name_mean(corruptions: Iterable[str], wanted: Sequence[str] = MCA_CORRUPTIONS) -> str:
    """What to call the mean over those of `corruptions` that are `wanted`: mCA or mCA-N only where none is missing.

    >>> name_mean(NAMES), name_mean(NAMES, MCA_N_CORRUPTIONS)
    ('mCA', 'mCA-N')
    >>> name_mean(["fog", "snow", "gaussian_noise"]), name_mean(["fog"])
    ('mean over fog, snow (2 corruptions)', 'mean over fog (1 corruption)')
    """
    present = [name for name in corruptions if name in wanted]
    if is_complete(present, wanted):
        return "mCA-N" if tuple(wanted) == MCA_N_CORRUPTIONS else "mCA"
    count = f"{len(present)} corruption{'' if len(present) == 1 else 's'}"
    return f"mean over {', '.join(present)} ({count})" if len(present) <= SEVERAL else f"mean over {count}"


def mean_corruption_accuracy(accuracies: Accuracies, corruptions: Iterable[str] | None = None) -> float | None:
    """mCA = 1/(M J) sum over M corruptions and J severities, without Gaussian noise and without those of other sets.

    Over fewer than `MCA_CORRUPTIONS` it is a mean, but not mCA: `name_mean` gives what to call it.

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
    """The predictions under several corruptions together; not a mean of their calibrations.

    Args:
        conditions: Calibration by corruption and severity.
        corruptions: Which; by default those of mCA, without Gaussian noise.

    Returns:
        One calibration; None where no corruption counts.
    """
    wanted = MCA_CORRUPTIONS if corruptions is None else tuple(corruptions)
    chosen = [part for (name, _), part in conditions.items() if name in wanted]
    return merge_calibrations(chosen) if chosen else None


def merge_calibrations(parts: Sequence[Calibration]) -> Calibration:
    """What all of them counted, at least one."""
    total = Calibration(parts[0].bins)
    for part in parts:
        total.merge(part)
    return total
