"""What is counted of the predictions under one condition."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from dign.metrics import NLL, Calibration, SmoothECE
from dign.metrics.proper_scores import brier_losses, log_losses


@dataclass(eq=False)
class Tally:
    """Calibration, log loss, confidences and answers of the predictions under one condition; parts merge in order.

    Attributes:
        calibration: Right and confident, by bin.
        loss: The log losses.
        confidences: The confidence of each image, and whether it is right.
        answers: The predicted class of each image.
        labels: Its true class.
        losses: Its log loss and its Brier score, (N,2).
    """

    calibration: Calibration
    loss: NLL = field(default_factory=NLL)
    confidences: SmoothECE = field(default_factory=SmoothECE)
    answers: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int32))
    labels: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.int32))
    losses: Tensor = field(default_factory=lambda: torch.empty(0, 2, dtype=torch.float32))

    @classmethod
    def empty(cls, bins: int) -> Tally:
        """A tally of nothing."""
        return cls(Calibration(bins))

    @classmethod
    def of(cls, probabilities: Tensor, labels: Tensor, bins: int) -> Tally:
        """The tally of one batch, on the CPU."""
        tally = cls.empty(bins)
        for metric in (tally.calibration, tally.loss, tally.confidences):
            metric.update(probabilities, labels)
        tally.answers, tally.labels = probabilities.argmax(1).int(), labels.int()
        found = log_losses(probabilities, labels), brier_losses(probabilities, labels)
        tally.losses = torch.stack(found, dim=1).float().clamp(min=0)  # a probability may be rounded above 1
        return tally

    def merge(self, other: Tally) -> None:
        """Add the tally of the images that come next."""
        self.calibration.merge(other.calibration)
        self.loss.merge(other.loss)
        self.confidences.merge(other.confidences)
        self.answers = torch.cat([self.answers, other.answers])
        self.labels = torch.cat([self.labels, other.labels])
        self.losses = torch.cat([self.losses, other.losses])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        same = (self.calibration, self.loss, self.confidences) == (other.calibration, other.loss, other.confidences)
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("answers", "labels", "losses"))
        return same and all(torch.equal(mine, theirs) for mine, theirs in pairs)

    __hash__ = None  # type: ignore[assignment]  # it changes with every merge
