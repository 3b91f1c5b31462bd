"""What every data source gives: uint8 images, labels, class names, and three splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback
from dign.data.images import Images
from dign.data.pictures import Pictures


@dataclass(frozen=True, eq=False)
class Split:
    """Images and their labels.

    A split that is cut from others is a list of their indices: nothing is copied. `take` reads some of the images,
    `images` all of them.

    Args:
        stored: (N,3,H,W) uint8: a tensor, which may be a memory map, or any other `Images`.
        labels: Class indices, (N,) int64; with `index` those of the chosen images.
        pictures: The files that the images were made from, if any, one for each label: random crops are cut from them.
        index: Which of the stored images belong to the split, in this order; all of them by default.

    >>> shades = torch.arange(4, dtype=torch.uint8).view(4, 1, 1, 1).expand(4, 3, 8, 8)
    >>> split = Split(shades, torch.tensor([0, 1, 0, 1]))
    >>> few = split.select(torch.tensor([3, 1]))
    >>> few.labels, few.take(slice(1))[0, 0, 0, 0]
    (tensor([1, 1]), tensor(3, dtype=torch.uint8))
    """

    stored: Images
    labels: Tensor
    pictures: Pictures | None = None
    index: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def images(self) -> Tensor:
        """All images, (N,3,H,W) uint8: perhaps a memory map, and a copy where the split was cut from another."""
        return self.take(slice(None))

    @property
    def shape(self) -> torch.Size:
        """(N,3,H,W)."""
        return torch.Size((len(self.stored) if self.index is None else len(self.index), *self.stored.shape[1:]))

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width."""
        height, width = self.stored.shape[-2:]
        return height, width

    def take(self, which: slice | Tensor) -> Tensor:
        """The images of a slice, or at these indices (n,), in this order: (n,3,H,W) uint8. No others are read."""
        if self.index is None:
            return self.stored[which]
        rows = self.index[which]
        first = int(rows[0]) if isinstance(which, slice) and len(rows) else -1
        if first >= 0 and bool((rows == torch.arange(first, first + len(rows))).all()):
            return self.stored[first : first + len(rows)]  # neighbors: no copy
        return self.stored[rows]

    def select(self, which: Tensor) -> Split:
        """The split of the images at these indices; none of them is read."""
        rows = which if self.index is None else self.index[which]
        pictures = self.pictures.select(which) if self.pictures else None
        return Split(self.stored, self.labels[which], pictures, index=rows)


class _JoinedImages:
    """The images of several splits, one after the other."""

    dtype = torch.uint8

    def __init__(self, parts: Sequence[Split]) -> None:
        self.parts = parts
        self.ends = torch.tensor([len(part) for part in parts]).cumsum(0)

    @property
    def shape(self) -> torch.Size:
        return torch.Size((len(self), *self.parts[0].shape[1:]))

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, which: slice | Tensor) -> Tensor:
        rows = torch.arange(len(self))[which]
        images = torch.empty(len(rows), *self.shape[1:], dtype=torch.uint8)
        owners = torch.bucketize(rows, self.ends, right=True)
        for number, part in enumerate(self.parts):
            mine = (owners == number).nonzero().flatten()
            if len(mine):
                images[mine] = part.take(rows[mine] - (self.ends[number] - len(part)))
        return images


def join_splits(parts: Sequence[Split]) -> Split:
    """The images of several splits of one image size, one after the other; none of them is read or copied.

    >>> dark, light = (torch.full((2, 3, 8, 8), shade, dtype=torch.uint8) for shade in (0, 255))
    >>> joined = join_splits([Split(dark, torch.tensor([0, 0])), Split(light, torch.tensor([1, 1]))])
    >>> joined.take(torch.tensor([3, 0]))[:, 0, 0, 0], joined.labels
    (tensor([255,   0], dtype=torch.uint8), tensor([0, 0, 1, 1]))
    """
    return Split(_JoinedImages(parts), torch.cat([part.labels for part in parts]))


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
        enlarged: How many pictures of a folder were smaller than its images, as far as that is known.

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
    enlarged: int = 0

    def __post_init__(self) -> None:
        for name in ("train", "validation", "test"):
            _check_split(self, name, getattr(self, name))

    @property
    def image_size(self) -> tuple[int, int]:
        """Height and width."""
        return self.train.image_size


@dataclass(frozen=True)
class OfficialSplits:
    """The splits of a source before a validation split is cut; `validation` only if the source has its own."""

    classes: tuple[str, ...]
    train: Split
    test: Split
    validation: Split | None = None
    location: str = "memory"
    skipped: tuple[str, ...] = ()
    enlarged: int = 0


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
    kind, shape, labels = split.stored.dtype, split.shape, split.labels
    if kind != torch.uint8 or len(shape) != 4 or shape[1] != 3:
        raise UserError(f"{data.name}: {name} images must be uint8 (N,3,H,W), not {kind} {tuple(shape)}.")
    if shape[0] != len(labels):
        raise UserError(f"{data.name}: {shape[0]} {name} images but {len(labels)} labels.")
    if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < len(data.classes):
        raise UserError(
            f"{data.name}: a {name} label is outside 0..{len(data.classes) - 1}, the {len(data.classes)} classes."
        )
