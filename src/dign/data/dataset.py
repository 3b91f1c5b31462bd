"""What every data source gives: uint8 images, labels, class names, and three splits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback
from dign.data.pictures import Pictures


@dataclass(frozen=True)
class Split:
    """Images and their labels.

    Attributes:
        images: (N,3,H,W) uint8. They may be a memory map: index them, do not copy.
        labels: Class indices, (N,) int64.
        pictures: The files that the images were made from, if any: random crops are cut out of them.

    >>> len(Split(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])))
    2
    """

    images: Tensor
    labels: Tensor
    pictures: Pictures | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class DataSet:
    """A data set with three splits, checked when it is created.

    Attributes:
        name: For messages and results.
        classes: Names of the classes, in the order of the labels.
        train: Images to train on.
        validation: Cut from the training images, for choices between models.
        test: For the final measurement alone.
        location: Where the images are stored, for display.
        skipped: Image files of a folder that cannot be read and were left out, by their place in it.

    Raises:
        UserError: Images or labels have the wrong shape, type or range.
    """

    name: str
    classes: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    location: str = "memory"
    skipped: tuple[str, ...] = ()

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
    """The splits of a source before a validation split is cut; `validation` only if the source has its own."""

    classes: tuple[str, ...]
    train: Split
    test: Split
    validation: Split | None = None
    location: str = "memory"
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """The result of verifying one array: what it was compared with, and whether it agreed."""

    what: str
    good: bool
    against: str


class Source(Protocol):
    """A source of images. `root` is the cache folder, `origin` a file or folder that the user names."""

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits: ...

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        """Store the data in the cache unless an intact copy is there; returns a sentence that says what was done."""
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
            f"{data.name}: a {name} label is outside 0..{len(data.classes) - 1}, the {len(data.classes)} classes."
        )
