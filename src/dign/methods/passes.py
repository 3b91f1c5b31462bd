"""Passes through a model: how batches make them, and how many a method costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.core.outputs import logits_of, release
from dign.methods.reach import Pass, Reach


@dataclass(frozen=True)
class Cost:
    """Passes through the model per image and training step.

    Attributes:
        forward: Forward passes.
        backward: Backward passes.
        input_only: How many of the backward passes compute no gradients of the parameters, as in an attack: about half
            the work of a full one.
        second_order: Passes through the graph of a backward pass, which training through a gradient needs: each about
            the work of a full backward pass.

    >>> Cost(forward=8, backward=8, input_only=7).standard_steps
    5.666666666666667
    """

    forward: float
    backward: float
    input_only: float = 0
    second_order: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def standard_steps(self) -> float:
        """In steps of Standard training, a backward pass taken as twice a forward pass."""
        return (self.forward + 2 * (self.backward + self.second_order) - self.input_only) / 3


def forward(
    model: nn.Module,
    batches: Sequence[Tensor],
    *,
    together: bool,
    reach: Reach | None = None,
    passing: Pass | None = None,
    release_hooks: bool = False,
) -> list[Tensor]:
    """The logits of each batch.

    Args:
        model: Any module whose output `dign.core.outputs.logits_of` understands.
        batches: Batches of images, each (N,3,H,W).
        together: Make one pass over all of them, otherwise one pass each.
        reach: Hooks on the model that are to work in these passes.
        passing: What they are told: the owners of the batches, one for each.
        release_hooks: Whether gradients of the logits are taken otherwise than by training (`release`).

    >>> images = torch.rand(2, 3, 8, 8)
    >>> [logits.shape[1] for logits in forward(nn.Flatten(), [images, images], together=True)]
    [192, 192]
    """
    reach = reach or Reach([])

    def make_pass(batch: Tensor, passing: Pass | None) -> Tensor:
        reach.current = passing
        logits = logits_of(model(batch))
        reach.current = None
        return release(logits) if release_hooks else logits

    if not together or len(batches) == 1:
        passes = [None] * len(batches) if passing is None else passing.split()
        return [make_pass(batch, each) for batch, each in zip(batches, passes, strict=True)]
    sizes = [len(batch) for batch in batches]
    logits = make_pass(torch.cat(list(batches)), passing)
    if logits.dim() == 0 or len(logits) != sum(sizes):
        raise UserError(f"the model returned logits of shape {tuple(logits.shape)} for {sum(sizes)} images.")
    return list(logits.split(sizes))
