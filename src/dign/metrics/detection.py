"""How well a score tells two kinds of image apart: right from wrong answers, known from unknown images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dign.core.errors import UserError, unknown_name
from dign.metrics.base import measure
from dign.metrics.confidences import Confidences

OUTLIER_SCORES = ("softmax", "entropy", "energy")


@dataclass(frozen=True)
class DetectionScores:
    """How well a score tells positives from negatives, in percent; 50, the share of positives and 95 are chance.

    Attributes:
        auroc: How often a positive has a higher score than a negative; half of the ties count.
        aupr: Average precision: the mean precision over the positives, found in the order of their scores.
        fpr95: The negatives that are taken for positives where 95 % of the positives are found.
    """

    auroc: float
    aupr: float
    fpr95: float


def detect(positive: Tensor, negative: Tensor) -> DetectionScores | None:
    """How well scores tell two kinds apart, with both kinds in the measurement.

    Args:
        positive: Scores (P,) of the kind that should have high ones.
        negative: Scores (N,) of the other kind.

    Returns:
        The scores; None where one of the kinds is missing.

    >>> scores = detect(torch.tensor([3.0, 2.0]), torch.tensor([1.0, 2.5]))
    >>> scores.auroc, round(scores.aupr, 2), scores.fpr95
    (75.0, 83.33, 50.0)
    """
    if not len(positive) or not len(negative):
        return None
    scores = torch.cat([positive, negative]).double()
    kind = torch.cat([torch.ones(len(positive)), torch.zeros(len(negative))]).double().to(scores.device)
    ordered, order = scores.sort(descending=True)
    _, sizes = ordered.unique_consecutive(return_counts=True)
    last = sizes.cumsum(0) - 1  # a threshold accepts all images of one score, or none
    found = kind[order].cumsum(0)[last]
    false = last + 1 - found
    recall, fallout = found / len(positive), false / len(negative)
    gain = torch.diff(recall, prepend=recall.new_zeros(1))
    beside = (fallout + torch.cat([fallout.new_zeros(1), fallout[:-1]])) / 2
    enough = int((recall >= 0.95 - 1e-12).nonzero()[0])
    return DetectionScores(
        auroc=100 * float((gain * (1 - beside)).sum()),
        aupr=100 * float((gain * found / (last + 1)).sum()),
        fpr95=100 * float(fallout[enough]),
    )


def outlier_score(
    logits: Tensor, kind: Literal["softmax", "entropy", "energy"] = "softmax", temperature: float = 1.0
) -> Tensor:
    """How much images look like those that a model knows: higher for known ones.

    Args:
        logits: (N,C). Log-probabilities give the same for "softmax" and "entropy", and 0 for "energy".
        kind: "softmax", the largest probability; "entropy", its negative entropy; "energy", log sum exp of the logits.
        temperature: Divides the logits.

    Returns:
        Scores (N,).

    Raises:
        UserError: The kind is unknown.

    >>> outlier_score(torch.tensor([[0.0, 0.0], [4.0, 0.0]])).float()
    tensor([0.5000, 0.9820])
    """
    z = logits.detach().double() / temperature
    if kind == "softmax":
        return z.softmax(1).amax(1)
    if kind == "entropy":
        return (z.softmax(1) * z.log_softmax(1)).sum(1)
    if kind == "energy":
        return temperature * z.logsumexp(1)
    raise unknown_name("outlier score", kind, OUTLIER_SCORES)


class _Detection(Confidences[float]):
    """How well the confidence tells right from wrong predictions."""

    def _detection(self) -> DetectionScores:
        confidence, correct = self._images()
        scores = detect(confidence[correct], confidence[~correct])
        if scores is None:
            which = "right" if bool(correct.all()) else "wrong"
            raise UserError(f"All {len(correct)} predictions are {which}: there is nothing to tell apart.")
        return scores


class AUROC(_Detection):
    """How well the confidence tells right from wrong predictions: the area under the ROC curve, in percent.

        AUROC = P(c_right > c_wrong) + 1/2 P(c_right = c_wrong)

    50 is chance. It says nothing about calibration, and nothing about how many predictions are wrong.

    Shapes: probabilities (N,C), labels (N,).

    >>> metric = AUROC()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), torch.tensor([0, 1, 0]))
    >>> metric.compute()
    50.0
    """

    def compute(self) -> float:
        """AUROC in percent.

        Raises:
            UserError: All predictions are right, or all wrong.
        """
        return self._detection().auroc


class AUPR(_Detection):
    """How well the confidence tells right from wrong predictions: average precision of the right ones, in percent.

    Shapes: probabilities (N,C), labels (N,).

    >>> metric = AUPR()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([1, 0]))
    >>> metric.compute()
    50.0
    """

    def compute(self) -> float:
        """Average precision in percent.

        Raises:
            UserError: All predictions are right, or all wrong.
        """
        return self._detection().aupr


class FPR95(_Detection):
    """Which share of the wrong predictions a threshold on the confidence accepts if it accepts 95 % of the right ones.

    In percent; less is better. Shapes: probabilities (N,C), labels (N,).

    >>> metric = FPR95()
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), torch.tensor([0, 0, 1]))
    >>> metric.compute()
    0.0
    """

    def compute(self) -> float:
        """FPR95 in percent.

        Raises:
            UserError: All predictions are right, or all wrong.
        """
        return self._detection().fpr95


def auroc(probabilities: Tensor, labels: Tensor) -> float:
    """How well the confidence tells right from wrong in one call: see `AUROC`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).

    Returns:
        The area under the ROC curve, in percent.

    Raises:
        UserError: A shape or a value is wrong, or all predictions are right, or all wrong.

    >>> auroc(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    100.0
    """
    return measure(AUROC(), probabilities, labels)


def aupr(probabilities: Tensor, labels: Tensor) -> float:
    """Average precision of the right predictions in one call: see `AUPR`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).

    Returns:
        Average precision, in percent.

    Raises:
        UserError: A shape or a value is wrong, or all predictions are right, or all wrong.

    >>> aupr(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    100.0
    """
    return measure(AUPR(), probabilities, labels)


def fpr95(probabilities: Tensor, labels: Tensor) -> float:
    """Wrong predictions accepted with 95 % of the right ones, in one call: see `FPR95`.

    Args:
        probabilities: (N,C), each row in [0,1].
        labels: Class indices (N,).

    Returns:
        The false positive rate, in percent.

    Raises:
        UserError: A shape or a value is wrong, or all predictions are right, or all wrong.

    >>> fpr95(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
    0.0
    """
    return measure(FPR95(), probabilities, labels)
