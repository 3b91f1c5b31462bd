"""All measures of uncertainty of one set of predictions, in one pass over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from dign.metrics.calibration_errors import AdaptiveECE, DebiasedRMSE, SmoothECE
from dign.metrics.confidences import Confidences
from dign.metrics.detection import detect
from dign.metrics.proper_scores import NLL, Brier, ClasswiseECE
from dign.metrics.selective import AUGRC, AURC, AccuracyAtCoverage

COVERAGE = 0.8
"""The coverage of `UncertaintyScores.accuracy_at_80`."""


@dataclass(frozen=True)
class UncertaintyScores:
    """What `Uncertainty` computes; all in percent but `nll` and the Brier scores.

    Attributes:
        nll: Mean negative log-likelihood, in nats.
        brier: Brier score, from 0 to 2.
        brier_reliability: Its part that calibration can remove.
        brier_resolution: Its part that tells images apart; more is better.
        adaptive_ece: ECE over bins of equal mass.
        classwise_ece: ECE of every class's probability, the mean over classes.
        debiased_rmse: Root mean square calibration error without the bias of few images.
        smooth_ece: Smooth ECE.
        aurc: Area under the risk-coverage curve.
        augrc: Area under the generalized risk-coverage curve.
        accuracy_at_80: Accuracy on the 80 % of the images with the highest confidence.
        auroc: How well the confidence tells right from wrong; None where all are right, or all wrong.
        aupr: Average precision of the right ones by confidence; None likewise.
        fpr95: Wrong ones accepted with 95 % of the right ones; None likewise.
    """

    nll: float
    brier: float
    brier_reliability: float
    brier_resolution: float
    adaptive_ece: float
    classwise_ece: float
    debiased_rmse: float
    smooth_ece: float
    aurc: float
    augrc: float
    accuracy_at_80: float
    auroc: float | None = None
    aupr: float | None = None
    fpr95: float | None = None


UNCERTAINTY = tuple(spec.name for spec in fields(UncertaintyScores))


class Uncertainty:
    """Every measure of `UncertaintyScores` at once, batch by batch.

    Its state is a confidence and a bit for each image, and five numbers per class and bin.

    Args:
        bins: Number of bins of those that have some.

    >>> metric = Uncertainty()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    >>> scores = metric.compute()
    >>> scores.aurc, scores.auroc
    (25.0, 100.0)
    """

    def __init__(self, bins: int = 16) -> None:
        self.bins = bins
        self.reset()

    def reset(self) -> None:
        """Forget everything that was added."""
        self._loss, self._classes = NLL(), ClasswiseECE(self.bins)
        self._confidences = SmoothECE()

    def update(self, probabilities: Tensor, labels: Tensor) -> None:
        """Add a batch: probabilities (N,C) and class indices (N,)."""
        for part in (self._loss, self._classes, self._confidences):
            part.update(probabilities, labels)

    def to(self, device: torch.device | str) -> Self:
        """Move the state to a device; returns self."""
        for part in (self._loss, self._classes, self._confidences):
            part.to(device)
        return self

    def merge(self, other: Self) -> Self:
        """Add another one's images, as if its batches had been added here; returns self."""
        self._classes.merge(other._classes)  # first, since it refuses other bins
        self._loss.merge(other._loss)
        self._confidences.merge(other._confidences)
        return self

    def compute(self) -> UncertaintyScores:
        """All scores.

        Raises:
            UserError: No predictions were added.
        """
        return score_uncertainty(self._loss, self._classes, self._confidences)


def score_uncertainty(loss: NLL, classes: ClasswiseECE, confidences: SmoothECE) -> UncertaintyScores:
    """All scores, from the log losses, the probabilities of the classes and the confidences of the same predictions."""
    state, bins = confidences.state(), classes.bins
    confidence, correct = state["confidence"].cpu(), state["correct"].cpu()
    brier = Brier.from_state(classes.state()).compute()
    right_from_wrong = detect(confidence[correct], confidence[~correct])
    kinds: dict[str, Confidences[float]] = {
        "adaptive_ece": AdaptiveECE(bins),
        "debiased_rmse": DebiasedRMSE(bins),
        "aurc": AURC(),
        "augrc": AUGRC(),
        "accuracy_at_80": AccuracyAtCoverage(COVERAGE),
    }
    for metric in kinds.values():
        metric._restore(state)
    return UncertaintyScores(
        nll=loss.compute(),
        brier=brier.score,
        brier_reliability=brier.reliability,
        brier_resolution=brier.resolution,
        classwise_ece=classes.compute(),
        smooth_ece=confidences.compute(),
        **{name: metric.compute() for name, metric in kinds.items()},
        auroc=right_from_wrong.auroc if right_from_wrong else None,
        aupr=right_from_wrong.aupr if right_from_wrong else None,
        fpr95=right_from_wrong.fpr95 if right_from_wrong else None,
    )


def mean_scores(scores: Sequence[UncertaintyScores]) -> UncertaintyScores | None:
    """The mean of every score over conditions of as many images each; None for no conditions.

    A score that a condition lacks is left out of its mean.

    >>> mean_scores([]) is None
    True
    """
    if not scores:
        return None
    means: dict[str, float | None] = {}
    for name in UNCERTAINTY:
        known = [value for each in scores if (value := getattr(each, name)) is not None]
        means[name] = sum(known) / len(known) if known else None
    return UncertaintyScores(**means)  # type: ignore[arg-type]
