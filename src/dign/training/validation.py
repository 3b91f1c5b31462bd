"""How good a model is while it trains."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from dign.core.pixels import to_float
from dign.core.sampling import batch_size_for
from dign.core.seeds import make_generator
from dign.data.dataset import Split
from dign.methods.base import Method
from dign.parallel.team import SINGLE_PROCESS, Team


@torch.no_grad()
def validate(
    model: nn.Module,
    method: Method,
    split: Split,
    device: torch.device,
    *,
    seed: int,
    batch_size: int | None = None,
    team: Team = SINGLE_PROCESS,
) -> dict[str, float]:
    """Accuracy, balanced accuracy (both in percent) and mean log loss of the method's predictions on a split.

    Leaves the model in eval mode. A `team` shares out the batches; the sums are made in their order, and come out as
    those of one process.
    """
    model.eval()
    batch_size = batch_size or batch_size_for(split.image_size)
    starts = range(0, len(split), batch_size)
    sums = torch.zeros(len(starts), 2, device=device)
    images_by_class = split.labels.bincount()
    right_by_class = torch.zeros(len(images_by_class), device=device, dtype=torch.int64)
    for number in range(team.rank, len(starts), team.world_size):
        part = slice(starts[number], starts[number] + batch_size)
        x, y = to_float(split.take(part).to(device)), split.labels[part].to(device)
        right, sums[number] = score_batch(model, method, x, y, make_generator(seed, "validation", part.start, device))
        right_by_class.index_add_(0, y, right.long())
    correct = loss = 0.0
    for right_ones, lost in team.sum(sums).tolist():
        correct, loss = correct + right_ones, loss + lost
    shares = (
        team.sum(right_by_class).cpu().double() / images_by_class
    )  # 0 / 0, so not a number, for a class without images
    return {
        "accuracy": 100 * correct / len(split),
        "loss": loss / len(split),
        "balanced_accuracy": 100 * float(shares.nanmean()),
    }


def score_batch(
    model: nn.Module, method: Method, x: Tensor, y: Tensor, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Which predictions of a batch are right (N,), and how many with the sum of all log losses (2,): on the device."""
    probabilities = method.predict(model, x, generator)
    right = probabilities.argmax(1) == y
    loss = functional.nll_loss(probabilities.clamp(min=1e-12).log(), y, reduction="sum")
    return right, torch.stack((right.sum().to(loss.dtype), loss))
