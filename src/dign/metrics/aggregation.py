"""Means over corruptions and severities, mCA and mCA-N, and which corruptions they count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dign.corruptions import FAMILIES, NAMES, SEVERITIES
from dign.metrics.calibration_bins import Calibration

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
Measured = Mapping[str, Iterable[int]]
"""The severities that were measured, by corruption."""


def counts_in_mca(corruption: str) -> bool:
    """Whether a corruption is part of mCA: Gaussian noise is not, and neither is one of another set.

    >>> counts_in_mca("fog"), counts_in_mca("gaussian_noise"), counts_in_mca("ripple")
    (True, False, False)
    """
    return corruption in MCA_CORRUPTIONS


def is_complete(measured: Measured, wanted: Iterable[str] = MCA_CORRUPTIONS) -> bool:
    """Whether a mean over what was measured is mCA (with `MCA_N_CORRUPTIONS`: mCA-N): no corruption and no severity of
    it is missing.

    >>> every = dict.fromkeys(NAMES, SEVERITIES)
    >>> is_complete(every), is_complete({"fog": SEVERITIES}), is_complete(dict.fromkeys(NAMES, [1, 3, 5]))
    (True, False, False)
    """
    return all(set(SEVERITIES) <= set(measured.get(name, ())) for name in wanted)


def name_mean(measured: Measured, wanted: Sequence[str] = MCA_CORRUPTIONS) -> str:
    """What to call the mean over those corruptions that are `wanted`: mCA or mCA-N only where nothing is missing.

    >>> every = dict.fromkeys(NAMES, SEVERITIES)
    >>> name_mean(every), name_mean(every, MCA_N_CORRUPTIONS)
    ('mCA', 'mCA-N')
    >>> name_mean({"fog": SEVERITIES, "snow": SEVERITIES}), name_mean({"fog": [3]})
    ('mean over fog, snow (2 corruptions)', 'mean over fog (1 corruption) at severity 3')
    """
    present = {name: sorted(severities) for name, severities in measured.items() if name in wanted}
    if is_complete(present, wanted):
        return "mCA-N" if tuple(wanted) == MCA_N_CORRUPTIONS else "mCA"
    count = f"{len(present)} corruption{'' if len(present) == 1 else 's'}"
    what = f"{', '.join(present)} ({count})" if len(present) <= SEVERAL else count
    return f"mean over {what}{_name_severities(list(present.values()))}"


def _name_severities(measured: Sequence[Sequence[int]]) -> str:
    """How the name of a mean goes on where it is not over all severities."""
    if all(set(SEVERITIES) <= set(each) for each in measured):
        return ""
    if any(each != measured[0] for each in measured):
        return " at some severities"
    return f" at severit{'y' if len(measured[0]) == 1 else 'ies'} {', '.join(map(str, measured[0]))}"


def mean_corruption_accuracy(accuracies: Accuracies, corruptions: Iterable[str] | None = None) -> float | None:
    """mCA = 1/(M J) sum over M corruptions and J severities, without Gaussian noise and without those of other sets.

    Over fewer than `MCA_CORRUPTIONS`, or not at all severities, it is a mean, but not mCA: `name_mean` gives what to
    call it.

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
