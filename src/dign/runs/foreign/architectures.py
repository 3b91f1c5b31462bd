"""Architectures of timm, torchvision and dign with weights of a file, or with those that their library fetches."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.models import build, fetch_pretrained, find_preprocessing
from dign.models.libraries import PREFIXES
from dign.models.preprocessing import Preprocessing
from dign.models.registry import STANDARDIZED
from dign.runs.checkpoints import read_tensors
from dign.runs.foreign.model import ForeignModel
from dign.runs.weight_matching import (
    NORMALIZATION,
    check_match,
    find_head,
    head_tensors,
    match_names,
    network_of,
)


def open_architecture(name: str, weights: str | Path | None, given: Preprocessing) -> ForeignModel:
    """An architecture by its name, with the weights that it was trained to."""
    if weights is None and not name.startswith(PREFIXES):
        raise UserError(f"{name} is an architecture without weights: name the file that has them with `weights`.")
    tensors = fetch_pretrained(name) if weights is None else read_tensors(Path(weights))
    known = find_preprocessing(name).override(given)
    size = (known.size, known.size) if known.size else (32, 32)
    model = build(name, classes=_count_classes(name, tensors, size), image_size=size)
    wanted, head = model.state_dict(), head_tensors(model)
    tensors = match_names(tensors, wanted, head)
    where = f"the pretrained {name}" if weights is None else str(weights)
    check_match(where, tensors, wanted, set(NORMALIZATION))
    model.load_state_dict(tensors, strict=False)  # known to fit; the normalization may be left out
    inside = all(key in tensors for key in NORMALIZATION)
    if name in STANDARDIZED and not inside:
        raise UserError(
            f"{where} has no normalization, which {name} standardizes images by: name a file that `dign train` saved."
        )
    network = model if inside else network_of(model)
    label = Path(weights).stem if weights else name
    return ForeignModel(network, label, given if inside else known, normalizes=inside)


def _count_classes(name: str, tensors: dict[str, Tensor], size: tuple[int, int]) -> int:
    """How many classes weights are for: as many as their head has rows, wherever in the file it is."""
    with torch.device("meta"):
        small = build(name, classes=2, image_size=size)
    matched = match_names(tensors, small.state_dict(), head_tensors(small))
    for module in find_head(small):
        head = matched.get(f"{module}.weight")
        if head is not None and head.dim() > 1:
            return len(head)
    return 2
