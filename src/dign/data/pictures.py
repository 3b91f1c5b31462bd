"""The files of whole photographs, many of them, in little memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor


@dataclass(frozen=True)
class Pictures:
    """Paths of image files, all in one array of bytes: a million of them are two arrays, not a million objects, so that
    they are selected and handed to worker processes at once.

    >>> pictures = Pictures.from_paths(["cats/1.jpg", "dogs/2.jpg"])
    >>> len(pictures), pictures[1].name
    (2, '2.jpg')
    """

    letters: np.ndarray
    """The paths one after the other, uint8."""
    starts: np.ndarray
    """Where each path starts, int64."""
    ends: np.ndarray

    @classmethod
    def from_paths(cls, paths: Iterable[str | Path]) -> Pictures:
        names = [os.fsencode(path) for path in paths]
        ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if names else ends
        return cls(np.frombuffer(b"".join(names), np.uint8), starts, ends)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> Path:
        return Path(os.fsdecode(self.letters[self.starts[number] : self.ends[number]].tobytes()))

    def select(self, index: Tensor) -> Pictures:
        """Those of these numbers, in that order; the paths themselves are shared."""
        chosen = index.cpu().numpy()
        return Pictures(self.letters, self.starts[chosen], self.ends[chosen])
