"""What every data source gives: uint8 images, labels, class names, and three splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback


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
    location: str = "memory"
    """Where the images lie, for a person to read."""

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            _check_split(self, name, getattr(self, name))

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.train.images.shape[-2:]
        return height, width


@dataclass(frozen=True)
class OfficialSplits:
    """What a source holds before a validation split is cut: `validation` only where the source brings its own."""

    classes: tuple[str, ...]
    train: Split
    test: Split
    validation: Split | None = None
    location: str = "memory"


@dataclass(frozen=True)
class Check:
    """The outcome of verifying one array: what it was compared with, and whether it agreed."""

    what: str
    good: bool
    against: str


class Source(Protocol):
    """A place that images come from. `root` is the cache folder; `origin` a file or folder the user points to."""

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits: ...

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        """Bring the data into the cache unless a sound copy is there; returns a sentence that says what was done."""
        ...

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]: ...


def _check_split(data: DataSet, name: str, split: Split) -> None:
    images, labels = split.images, split.labels
    if images.dtype != torch.uint8 or images.dim() != 4 or images.shape[1] != 3:
        raise UserError(
            f"{data.name}: {name} images must be uint8 (N,3,H,W), not {images.dtype} {tuple(images.shape)}."
        )
    if len(images) != len(labels):
        raise UserError(f"{data.name}: {len(images)} {name} images but {len(labels)} labels.")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(data.classes):
        raise UserError(
            f"{data.name}: a {name} label lies outside 0..{len(data.classes) - 1}, the {len(data.classes)} classes."
        )
