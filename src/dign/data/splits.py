"""Cut a split off another: stratified and seeded, so that the same seed always cuts the same images."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.seeds import make_generator
from dign.data.dataset import Split


def split_stratified(labels: Tensor, fraction: float, seed: int, purpose: str) -> tuple[Tensor, Tensor]:
    """Return indices (kept, cut), both ascending, with `fraction` of every class in `cut`.

    A class of n images gives round(fraction n) of them, at least one where it has two or more, and always keeps
    one. The draw of a class depends on (seed, purpose, class) alone, not on the other classes.
    """
    if not 0 <= fraction < 1:
        raise UserError(f"invalid fraction {fraction} of images to split off: expected at least 0 and below 1.")
    is_cut = torch.zeros(len(labels), dtype=torch.bool)
    for label in labels.unique().tolist():
        members = (labels == label).nonzero().flatten()
        order = torch.randperm(len(members), generator=make_generator(seed, purpose, label))
        is_cut[members[order[: _share(len(members), fraction)]]] = True
    return (~is_cut).nonzero().flatten(), is_cut.nonzero().flatten()


def cut_split(split: Split, fraction: float, seed: int, purpose: str) -> tuple[Split, Split]:
    """Cut a fraction off a split: (rest, cut). Nothing is copied; with fraction 0 the rest is the split itself."""
    kept, taken = split_stratified(split.labels, fraction, seed, purpose)
    rest = split if len(taken) == 0 else split.select(kept)
    return rest, split.select(taken)


def _share(count: int, fraction: float) -> int:
    if fraction == 0:
        return 0
    return min(max(math.floor(fraction * count + 0.5), 1), count - 1)
