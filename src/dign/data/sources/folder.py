"""Images of the user: one folder per class."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dign.core.errors import UserError, join_names, quote_path
from dign.core.progress import ProgressCallback, ignore_progress
from dign.data.cache import open_store
from dign.data.dataset import Check
from dign.data.decoding import UNREADABLE_EXTENSIONS, explain_undecodable, is_decodable, replace_unprintable
from dign.data.layout import LabeledPictures, Layout, cut_test
from dign.data.names import FOLDER_PREFIX, split_prefix
from dign.data.picture_source import PictureSource, make_prefix
from dign.data.pictures import Pictures

EXTENSIONS = frozenset(
    f".{name}"
    for names in ("jpg jpeg jpe jfif mpo", "png bmp gif webp avif", "tif tiff jp2", "ppm pgm pbm pnm")
    for name in names.split()
)
LISTED = EXTENSIONS | UNREADABLE_EXTENSIONS
"""Pictures, also those that cannot be decoded: skipping them would silently leave out half of the photographs of some
phones."""
DECODING = 2
"""Version of the decoding: raise it when decoding changes, so that older caches are not used."""
REPORT_EVERY = 5_000


@dataclass(frozen=True)
class Folder(PictureSource):
    """Images in `path`: train/ with test/ or val/ (with both, val/ is the validation split), each with one folder per
    class; or folders of classes alone, of which a fixed fifth of every class is the test split.
    """

    @property
    def name(self) -> str:
        return f"{FOLDER_PREFIX}{self.locate()}"

    def locate(self) -> Path:
        folder = Path(self.path).expanduser()
        if not self.path or not folder.is_dir():
            raise UserError(
                f"There is no folder '{replace_unprintable(self.path)}': give an existing one after 'folder:'."
            )
        return folder.resolve()

    def scan(self, place: Path, report: ProgressCallback, without: Collection[str] = ()) -> Layout:
        return scan_folder(place, report, without)

    def prefix(self, place: Path) -> str:
        return make_prefix("folder", place)

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None:
            raise UserError("A folder of images is used where it is: it cannot be fetched from elsewhere.")
        folder = self.locate()
        scan_folder(folder, report)
        for path in root.glob(f"{self.prefix(folder)}-*"):
            if not _is_intact(path, report):
                shutil.rmtree(path)
        return f"{folder} need not be fetched: its images are decoded into {root} on first use."

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        """The checksums of everything that was decoded from this folder."""
        folder = self.locate()
        current = scan_folder(folder, report).fingerprint
        checks = []
        for path in sorted(root.glob(f"{self.prefix(folder)}-*-{current}")):
            store = open_store(path)
            for check in store.verify(report) if store else ():
                checks.append(Check(f"{check.what} ({path.name})", check.good, check.against))
        if not checks:
            name = quote_path(f"folder:{self.path}")
            raise UserError(f"The current contents of {folder} have not been decoded yet: run `dign data show {name}`.")
        return checks


def _is_intact(path: Path, report: ProgressCallback) -> bool:
    try:
        store = open_store(path)
        return store is not None and all(check.good for check in store.verify(report))
    except UserError:
        return False


def scan_folder(folder: Path, report: ProgressCallback = ignore_progress, without: Collection[str] = ()) -> Layout:
    """Find the splits, the classes and the image files (those but `without`), without opening any of them.

    The fingerprint changes when any file's name, size or time of change does.
    """
    walk = _Walk(folder, report, frozenset(without))
    if not _has_splits(folder):
        classes = _classes(folder)
        return cut_test(Layout(classes, {"train": walk.list_split("train", folder, classes)}, walk.fingerprint))
    places = {"train": folder / "train"}
    given = [name for name in ("test", "val") if (folder / name).is_dir()]
    if not given:
        raise UserError(
            f"{folder} has train/ but neither test/ nor val/: add one, or give {folder / 'train'} to split."
        )
    if len(given) == 2:
        places["validation"] = folder / "val"
    places["test"] = folder / given[0]
    classes = _classes(places["train"])
    splits = {name: walk.list_split(name, place, classes) for name, place in places.items()}
    return Layout(classes, splits, walk.fingerprint)


class _Walk:
    """Lists the files of class folders, and hashes what it sees of them."""

    def __init__(self, folder: Path, report: ProgressCallback, without: frozenset[str]) -> None:
        self.skip = len(os.fsencode(folder)) + 1
        self.report, self.without = report, without
        self.sha, self.found = hashlib.sha256(f"{DECODING}".encode()), 0

    @property
    def fingerprint(self) -> str:
        return self.sha.hexdigest()[:16]

    def list_split(self, split: str, place: Path, classes: Sequence[str]) -> LabeledPictures:
        strange = sorted({entry.name for entry in os.scandir(place) if _is_class(entry)} - set(classes))
        if strange:
            names = join_names([replace_unprintable(name) for name in strange])
            kind = "is a class" if len(strange) == 1 else "are classes"
            raise UserError(
                f"{names} in {place} {kind} that the training images do not have: add training images, or remove "
                f"{'it' if len(strange) == 1 else 'them'}."
            )
        paths: list[str] = []
        counts = np.zeros(len(classes), np.int64)
        for label, name in enumerate(classes):
            if not (place / name).is_dir():
                continue  # a test split need not hold every class
            before = len(paths)
            paths += self._list_class(split.encode(), place / name)
            counts[label] = len(paths) - before
            if len(paths) == before:
                what = "no images that can be read" if self.without else "no images"
                raise UserError(
                    f"The class folder {place / replace_unprintable(name)} contains {what}: fill it or remove it."
                )
        if not paths:
            raise UserError(f"{place} contains no images.")
        return LabeledPictures(Pictures.from_paths(paths), np.repeat(np.arange(len(classes)), counts))

    def _list_class(self, split: bytes, place: Path) -> Iterator[str]:
        for entry in walk_images(str(place)):
            if entry.path in self.without:
                continue
            size, changed = _stat(entry)
            name = os.fsencode(entry.path)[self.skip :]
            self.sha.update(b"%s\0%s\0%d\0%d\0" % (split, name, size, changed))
            self.found += 1
            if self.found % REPORT_EVERY == 0:
                self.report("Indexing images", self.found, None)
            yield entry.path


def walk_images(place: str) -> Iterator[os.DirEntry[str]]:
    """Yield the pictures in a folder and below it in the order of their names, also those that cannot be decoded."""
    folders = []
    with os.scandir(place) as entries:
        for entry in sorted(entries, key=_get_name):
            if entry.name.startswith("."):
                continue
            if os.path.splitext(entry.name)[1].lower() in LISTED and not entry.is_dir():
                yield entry
            elif entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    for folder in folders:
        yield from walk_images(folder)


def _get_name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _stat(entry: os.DirEntry[str]) -> tuple[int, int]:
    """Size and time of change; zeros for a file that is not there (a broken link), which decoding will report."""
    try:
        state = entry.stat()
    except OSError:
        return 0, 0
    return state.st_size, state.st_mtime_ns


def _classes(place: Path) -> tuple[str, ...]:
    classes = tuple(sorted(entry.name for entry in os.scandir(place) if _is_class(entry)))
    if len(classes) < 2:
        raise UserError(f"{place} must contain at least two folders, one for each class; it contains {len(classes)}.")
    return classes


def has_own_test_split(name: str) -> bool:
    """Whether the test images of a data set are separate, so that none of them is ever a training image."""
    prefix, place = split_prefix(name)
    if prefix == FOLDER_PREFIX:
        return _has_splits(Path(place).expanduser())
    return not prefix  # of shards and tables it is not known without reading them


def _has_splits(folder: Path) -> bool:
    """Whether there are classes in train/; a train/ with pictures alone is itself a class."""
    return (folder / "train").is_dir() and any(map(_is_class, os.scandir(folder / "train")))


def _is_class(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")


def find_pictures(place: Path) -> Iterator[Path]:
    """Yield the image files in a folder and below it, without hidden ones, in the order of their names."""
    for entry in walk_images(str(place)):
        if not is_decodable(entry.name):
            advice = explain_undecodable(entry.name)
            raise UserError(f"{replace_unprintable(entry.path)} cannot be decoded: {advice}, or move it elsewhere.")
        yield Path(entry.path)
