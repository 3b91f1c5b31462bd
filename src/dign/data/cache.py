"""The cache: data sets decoded into .npy files that are mapped into memory.

A store is a folder `NAME/` with `train_images.npy` (N,3,H,W) uint8, `train_labels.npy` (N,) int64, the same for
`test` (and `validation` where the source has its own), and `info.json` with class names and the SHA-256 of every
array. It is written as `.NAME.partial/` and renamed, so a reader never sees half of one.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dign.core.errors import UserError
from dign.core.files import map_array, read_json, write_json
from dign.core.progress import ProgressCallback, ignore_progress
from dign.data.dataset import Check, OfficialSplits, Split
from dign.data.images import ImageFile, Images

FORMAT = 1


def cache_root() -> Path:
    """Return the folder that data sets are stored in: $DIGN_DATA, else the platform's cache directory."""
    from platformdirs import user_cache_path

    chosen = os.environ.get("DIGN_DATA")
    return Path(chosen).expanduser() if chosen else user_cache_path("dign", appauthor=False)


@dataclass(frozen=True)
class Store:
    """A store on disk, its `info.json` read and its files' shapes checked."""

    path: Path
    info: dict[str, Any]

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.info["classes"])

    @property
    def origin(self) -> str:
        """Where the images came from, for display."""
        return str(self.info["origin"])

    @property
    def identity(self) -> str:
        """A name for the contents: equal for equal arrays."""
        return hashlib.sha256(json.dumps(self.info["arrays"], sort_keys=True).encode()).hexdigest()[:16]

    def array(self, name: str) -> np.ndarray:
        """Map one array, copy-on-write: what a caller writes never reaches the file."""
        file = self.path / f"{name}.npy"
        expected = self.info["arrays"][name]
        try:
            array = map_array(file, "c")
        except (OSError, ValueError) as error:
            raise self.make_damage_error(file) from error
        if list(array.shape) != expected["shape"] or str(array.dtype) != expected["dtype"]:
            raise self.make_damage_error(file)
        return array

    def make_damage_error(self, file: Path) -> UserError:
        return UserError(
            f"{file} is missing, truncated or damaged: remove the folder {self.path} and "
            f"run `dign data fetch {self.info['name']}` again."
        )

    def read_split(self, name: str) -> Split:
        return Split(self._images(f"{name}_images"), torch.from_numpy(self.array(f"{name}_labels")))

    def _images(self, name: str) -> Images:
        """The images mapped into memory, or, where the address space has no room for them, read one by one."""
        try:
            return torch.from_numpy(self.array(name))
        except UserError as error:
            if getattr(error.__cause__, "errno", None) != errno.ENOMEM:
                raise
        file = self.path / f"{name}.npy"
        try:
            images = ImageFile(file)
        except (OSError, ValueError) as error:
            raise self.make_damage_error(file) from error
        if list(images.shape) != self.info["arrays"][name]["shape"]:
            raise self.make_damage_error(file)
        return images

    def read_splits(self) -> OfficialSplits:
        own = self.read_split("validation") if "validation_labels" in self.info["arrays"] else None
        return OfficialSplits(self.classes, self.read_split("train"), self.read_split("test"), own, str(self.path))

    def verify(self, report: ProgressCallback = ignore_progress) -> list[Check]:
        """Compute the SHA-256 of every array again and compare it with the one recorded when it was written."""
        checks = []
        for done, (name, recorded) in enumerate(self.info["arrays"].items()):
            report("Verifying", done, len(self.info["arrays"]))
            good = hash_array(self.array(name)) == recorded["sha256"]
            checks.append(Check(name.replace("_", " "), good, "the SHA-256 recorded when it was stored"))
        report("Verifying", len(checks), len(checks))
        return checks


def hash_array(array: np.ndarray) -> str:
    """SHA-256 of an array's raw bytes in C order, a piece at a time."""
    sha = hashlib.sha256()
    for start in range(0, len(array), 1024):
        sha.update(np.ascontiguousarray(array[start : start + 1024]).data)
    return sha.hexdigest()


def open_store(path: Path) -> Store | None:
    """Open the store at `path`; None if there is none, or one of another version, which is then built again."""
    file = path / "info.json"
    if not file.is_file():
        return None
    try:
        info = read_json(file)
        if info["format"] != FORMAT:
            return None
        _check_info(info)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file} is damaged: remove the folder {path} and fetch the data again.") from error
    return Store(path, info)


def mark_used(file: Path) -> None:
    """Give a file the present time, by which `dign data clear` knows what is used; a read-only cache stays as it is."""
    with suppress(OSError):
        os.utime(file)


def open_built_store(path: Path) -> Store:
    """Open a store that was just built."""
    store = open_store(path)
    assert store is not None, path
    return store


def _check_info(info: dict[str, Any]) -> None:
    good = (
        isinstance(info["name"], str)
        and isinstance(info["origin"], str)
        and all(isinstance(name, str) for name in info["classes"])
        and {"train_images", "train_labels", "test_images", "test_labels"} <= set(info["arrays"])
        and all(set(array) >= {"shape", "dtype", "sha256"} for array in info["arrays"].values())
        and all(os.sep not in name and "/" not in name for name in info["arrays"])
    )
    if not good:
        raise ValueError("incomplete")


class StoreWriter:
    """Writes the arrays of a new store, each in one pass."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.arrays: dict[str, dict[str, Any]] = {}
        self.facts: dict[str, Any] = {}
        """Further entries of `info.json`, known once the arrays are written."""

    def write(self, name: str, shape: tuple[int, ...], dtype: str, pieces: Iterable[np.ndarray]) -> None:
        """Write an array of `shape` whose rows come in `pieces`.

        Plain writes: on a full disk they raise, where a memory map would kill the process.
        """
        sha, written = hashlib.sha256(), 0
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        with open(self.folder / f"{name}.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for piece in pieces:
                raw = np.ascontiguousarray(piece, dtype=dtype)
                file.write(raw.data)
                sha.update(raw.data)
                written += raw.nbytes
            file.flush()
            os.fsync(file.fileno())
        assert written == np.dtype(dtype).itemsize * int(np.prod(shape)), (name, shape, written)
        self.arrays[name] = {"shape": list(shape), "dtype": dtype, "sha256": sha.hexdigest()}

    def write_split(self, name: str, images: Iterable[np.ndarray], labels: np.ndarray, size: tuple[int, int]) -> None:
        """Write images, which come as (3,H,W) or (n,3,H,W) in the order of the labels, and the labels."""
        self.write(f"{name}_images", (len(labels), 3, *size), "uint8", images)
        self.write(f"{name}_labels", (len(labels),), "int64", [labels])


@contextmanager
def create_store(path: Path, *, name: str, classes: Iterable[str], origin: str, **facts: Any) -> Iterator[StoreWriter]:
    """Write a store, which replaces the one at `path` when the block succeeds; otherwise nothing is left of it.

    The caller holds the lock of `path`: what has the temporary name is from a process that was killed.
    """
    partial = path.with_name(f".{path.name}.partial")
    with explain_disk_errors(path.parent):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            writer = StoreWriter(partial)
            yield writer
            info = {"format": FORMAT, "name": name, "origin": origin, "classes": list(classes), **facts}
            info |= writer.facts
            write_json(partial / "info.json", {**info, "arrays": writer.arrays})
            shutil.rmtree(path, ignore_errors=True)
            os.replace(partial, path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


@contextmanager
def explain_disk_errors(folder: Path) -> Iterator[None]:
    """Turn the error of a full disk or a folder without write permission into a `UserError`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            problem = "the disk is full"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            problem = "it may not be written to"
        else:
            raise
        raise UserError(f"Cannot store data in {folder}: {problem}; set DIGN_DATA to another folder.") from error
