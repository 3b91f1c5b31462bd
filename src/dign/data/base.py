"""What every data source gives: uint8 images, labels, class names, and three splits."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from dign.errors import UserError


@dataclass(frozen=True)
class Split:
    """Images (N,3,H,W) uint8 and class indices (N,) int64. The images may be a memory map: index, do not copy."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSet:
    """A data set with three splits: `validation` is cut from the training images, `test` serves no choice."""

    name: str
    classes: tuple[str, ...]
    train: Split
    validation: Split
    test: Split

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            _check_split(self, name, getattr(self, name))

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width."""
        return tuple(self.train.images.shape[-2:])


def _check_split(data: DataSet, name: str, split: Split) -> None:
    images, labels = split.images, split.labels
    if images.dtype != torch.uint8 or images.dim() != 4 or images.shape[1] != 3:
        raise UserError(f"{data.name}: {name} images must be uint8 (N,3,H,W), not {images.dtype} {tuple(images.shape)}.")
    if len(images) != len(labels):
        raise UserError(f"{data.name}: {len(images)} {name} images but {len(labels)} labels.")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(data.classes):
        raise UserError(
            f"{data.name}: a {name} label lies outside 0..{len(data.classes) - 1}, the {len(data.classes)} classes."
        )
