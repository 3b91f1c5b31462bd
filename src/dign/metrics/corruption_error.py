"""mCE and relative mCE of ImageNet-C: errors in relation to AlexNet's (Hendrycks and Dietterich, 2019)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dign.corruptions.settings import SEVERITIES
from dign.metrics.aggregation import Accuracies

ALEXNET_CLEAN = 43.5
"""AlexNet's error on the clean validation images of ImageNet, in percent."""
ALEXNET: dict[str, float] = {
    "gaussian_noise": 88.6428,
    "shot_noise": 89.4468,
    "impulse_noise": 92.264,
    "defocus_blur": 81.988,
    "glass_blur": 82.6268,
    "motion_blur": 78.5948,
    "zoom_blur": 79.836,
    "snow": 86.6816,
    "frost": 82.6572,
    "fog": 81.9324,
    "brightness": 56.4592,
    "contrast": 85.3204,
    "elastic_transform": 64.6056,
    "pixelate": 71.784,
    "jpeg_compression": 60.65,
}
"""AlexNet's error under the fifteen corruptions of ImageNet-C, mean over the severities, in percent."""
_WNID = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class CorruptionError:
    """Errors in percent of AlexNet's.

    Attributes:
        mce: Mean over the fifteen corruptions of sum_s E(s) / sum_s E_AlexNet(s).
        relative_mce: The same of what corruption adds to the error: sum_s (E(s) - E(clean)) in the place of sum_s E(s).
        by_corruption: The summands of `mce`.
    """

    mce: float
    relative_mce: float
    by_corruption: dict[str, float]


def are_imagenet_classes(classes: Sequence[str]) -> bool:
    """Whether these are the thousand classes of ImageNet, named by their WordNet ids."""
    return len(set(classes)) == 1000 and all(_WNID.fullmatch(name) for name in classes)


def corruption_error(accuracies: Accuracies, clean_accuracy: float) -> CorruptionError | None:
    """mCE and relative mCE, for models of ImageNet's thousand classes on ImageNet-C.

    Args:
        accuracies: Accuracy in percent by corruption and severity.
        clean_accuracy: On the clean validation images, in percent.

    Returns:
        The errors; None where one of the fifteen corruptions was not measured at all five severities.

    >>> alexnet = {name: dict.fromkeys((1, 2, 3, 4, 5), 100 - error) for name, error in ALEXNET.items()}
    >>> found = corruption_error(alexnet, 56.5)
    >>> round(found.mce, 6), round(found.relative_mce, 6)
    (100.0, 100.0)
    """
    if any(set(accuracies.get(name, ())) != set(SEVERITIES) for name in ALEXNET):
        return None
    errors = {name: 100 - sum(accuracies[name].values()) / len(SEVERITIES) for name in ALEXNET}
    clean = 100 - clean_accuracy
    ratios = {name: 100 * error / ALEXNET[name] for name, error in errors.items()}
    relative = [100 * (error - clean) / (ALEXNET[name] - ALEXNET_CLEAN) for name, error in errors.items()]
    return CorruptionError(sum(ratios.values()) / len(ratios), sum(relative) / len(relative), ratios)
