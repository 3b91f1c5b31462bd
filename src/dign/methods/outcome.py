"""What a method makes of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Outcome:
    """What a method makes of a batch.

    Attributes:
        loss: The loss, a scalar: call `.backward()` on it.
        terms: The parts of the loss by name, weighted and detached, for logging. They add up to the loss.
        logits: Detached logits of the clean batch. A method that does not pass the clean batch through the model (RSE,
            for example) gives those of the batch it trains on, which saves a pass; so does one that augments, and where
            it mixes images (MixUp), the accuracy of these logits says little.
        measured: What a method that adapts itself has measured (`Method.adapted`), detached; most measure nothing.

    >>> import torch
    >>> from torch import nn
    >>> from dign.methods import DiGN
    >>> outcome = DiGN()(nn.Sequential(nn.Flatten(), nn.Linear(192, 10)), torch.rand(4, 3, 8, 8), torch.arange(4))
    >>> outcome.loss.backward()
    >>> list(outcome.terms), outcome.logits.shape
    (['cross_entropy', 'consistency'], torch.Size([4, 10]))
    """

    loss: Tensor
    terms: dict[str, Tensor]
    logits: Tensor
    measured: dict[str, Tensor] = field(default_factory=dict)
