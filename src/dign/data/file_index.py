"""Where the pictures of a large file (a shard, a table) are in it: found once, then kept in the cache."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from dign.core.files import parse_json, replace_file
from dign.core.locks import wait_for_lock
from dign.data.cache import cache_root, mark_used

FOLDER = "index"
FORMAT = 1
"""Part of the name of an index: another version does not read it."""


@dataclass(frozen=True)
class FileIndex:
    """The pictures of one file, in their order.

    Attributes:
        classes: Names of the classes.
        labels: The class of each picture, by its place among them (N,), int64.
        start: The byte at which each picture starts (N,), int64.
        size: The bytes of each picture (N,), int64.
    """

    classes: tuple[str, ...]
    labels: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, names: Sequence[str], start: Sequence[int], size: Sequence[int]) -> FileIndex:
        """The index of pictures with these names of classes, which are numbered as they are met.

        >>> index = FileIndex.of(["cat", "dog", "cat"], [0, 10, 20], [10, 10, 5])
        >>> index.classes, index.labels.tolist()
        (('cat', 'dog'), [0, 1, 0])
        """
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        arrays = ([numbers[name] for name in names], start, size)
        return cls(tuple(numbers), *(np.array(each, np.int64) for each in arrays))

    def __len__(self) -> int:
        return len(self.labels)


def index_once(file: Path, make: Callable[[], FileIndex]) -> FileIndex:
    """The index of a file from the cache; made, and kept there if it can be written to, where the file is new to it.

    A file is known by its path, its size and the time at which it was written.
    """
    state = os.stat(file)
    key = b"%d\0%s\0%d\0%d" % (FORMAT, os.fsencode(file.absolute()), state.st_size, state.st_mtime_ns)
    kept = cache_root() / FOLDER / f"{hashlib.sha256(key).hexdigest()[:24]}.npz"
    found = _read(kept)
    if found is None:
        found = make()
        with suppress(OSError):  # the cache may be read-only: then the next load looks again
            _write(kept, found)
    return found


def _read(kept: Path) -> FileIndex | None:
    """None where there is no index, or a damaged one."""
    with suppress(OSError, ValueError, TypeError, KeyError, EOFError, BadZipFile), open(kept, "rb") as file:
        arrays = np.load(file, allow_pickle=False)
        labels, start, size = (arrays[name] for name in ("labels", "start", "size"))
        classes = tuple(map(str, parse_json(arrays["classes"].tobytes())))
        shapes = {array.shape for array in (labels, start, size)}
        kinds = {array.dtype for array in (labels, start, size)}
        fits = len(shapes) == 1 and kinds == {np.dtype(np.int64)} and labels.ndim == 1
        if fits and (not len(labels) or 0 <= labels.min() <= labels.max() < len(classes)):
            mark_used(kept)
            return FileIndex(classes, labels, start, size)
    return None


def _write(kept: Path, index: FileIndex) -> None:
    names = np.frombuffer(json.dumps(index.classes).encode(), np.uint8)
    with wait_for_lock(kept), replace_file(kept) as partial, open(partial, "wb") as out:
        np.savez(out, classes=names, labels=index.labels, start=index.start, size=index.size)
