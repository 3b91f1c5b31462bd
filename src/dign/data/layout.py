"""What a source of the user's pictures holds, before any of them is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from dign.data.pictures import Pictures
from dign.data.splits import split_stratified

TEST_FRACTION = 0.2


@dataclass(frozen=True)
class NumberedPicture:
    """One of many pictures, as `bulk_decoding.Encoded` has it."""

    among: LabeledPictures
    number: int

    @property
    def name(self) -> str:
        return self.among.pictures.name(self.number)

    @property
    def label(self) -> int:
        return int(self.among.labels[self.number])

    def read(self) -> bytes | Path:
        return self.among.pictures.read(self.number)


@dataclass(frozen=True)
class LabeledPictures:
    """Pictures with their classes, which are made into objects only when they are asked for."""

    pictures: Pictures
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[NumberedPicture]:
        return (NumberedPicture(self, number) for number in range(len(self)))

    def select(self, index: torch.Tensor) -> LabeledPictures:
        return LabeledPictures(self.pictures.select(index), self.labels[index.numpy()])


@dataclass(frozen=True)
class Layout:
    """The contents of a source: class names, the pictures of every split in order, and a fingerprint of all of it.

    `splits` has "train" and "test", and "validation" where the source has its own.
    """

    classes: tuple[str, ...]
    splits: dict[str, LabeledPictures]
    fingerprint: str


def cut_test(layout: Layout) -> Layout:
    """The layout with a fixed fifth of every class of its training pictures as the test split."""
    found = layout.splits["train"]
    kept, cut = split_stratified(torch.from_numpy(found.labels), TEST_FRACTION, seed=0, purpose="test split")
    return replace(layout, splits={"train": found.select(kept), "test": found.select(cut)})
