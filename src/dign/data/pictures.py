"""The encoded pictures of a data set, many of them, in little memory: files, or parts of larger files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from dign.core.errors import UserError

WHOLE = -1
Numbers = Sequence[int] | np.ndarray


@dataclass(frozen=True)
class Pictures:
    """Image files, or images inside of larger files (archives, tables).

    A million of them are a few arrays, not a million objects, so that they are selected and handed to worker processes
    at once.

    Attributes:
        letters: The paths of the files one after the other, uint8.
        ends: Where each path ends in `letters`, int64.
        file: The number of each picture's file (N,), int64.
        start: The byte at which a picture starts in its file (N,), int64.
        size: The bytes of a picture (N,), int64; -1 for a whole file.

    >>> pictures = Pictures.from_paths(["cats/1.jpg", "dogs/2.jpg"])
    >>> len(pictures), pictures.path(1).name
    (2, '2.jpg')
    """

    letters: np.ndarray
    ends: np.ndarray
    file: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @classmethod
    def from_paths(cls, paths: Iterable[str | Path]) -> Pictures:
        """Every file is a picture."""
        files = list(paths)
        count = len(files)
        return cls.from_parts(files, np.arange(count), np.zeros(count, np.int64), np.full(count, WHOLE))

    @classmethod
    def from_parts(cls, paths: Iterable[str | Path], file: Numbers, start: Numbers, size: Numbers) -> Pictures:
        """Pictures of `size` bytes from byte `start` on in the file of number `file`."""
        names = [os.fsencode(path) for path in paths]
        ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        places = (np.asarray(each, np.int64) for each in (file, start, size))
        return cls(np.frombuffer(b"".join(names), np.uint8), ends, *places)

    def __len__(self) -> int:
        return len(self.file)

    def path(self, number: int) -> Path:
        """The file that a picture is, or is in."""
        file = self.file[number]
        first = self.ends[file - 1] if file else 0
        return Path(os.fsdecode(self.letters[first : self.ends[file]].tobytes()))

    def name(self, number: int) -> str:
        """What messages call a picture."""
        path = str(self.path(number))
        return path if self.size[number] == WHOLE else f"{path} (at byte {self.start[number]})"

    def read(self, number: int) -> bytes | Path:
        """The path of a picture that is a file, the contents of one that is in a file.

        Raises:
            UserError: The file cannot be read, or is shorter than it was.
        """
        path, size = self.path(number), int(self.size[number])
        if size == WHOLE:
            return path
        try:
            with open(path, "rb") as file:
                file.seek(int(self.start[number]))
                data = file.read(size)
        except OSError as error:
            raise UserError(error.strerror or str(error)) from error
        if len(data) < size:
            raise UserError("the file is shorter than it was")
        return data

    def select(self, index: Tensor) -> Pictures:
        """Those of these numbers, in that order; the paths themselves are shared."""
        chosen = index.cpu().numpy()
        return Pictures(self.letters, self.ends, self.file[chosen], self.start[chosen], self.size[chosen])
