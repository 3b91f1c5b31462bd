"""Images of the user: one folder per class, decoded once into the cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dign.core.errors import UserError, quote_path
from dign.core.locks import wait_for_lock
from dign.core.progress import ProgressCallback
from dign.data.bulk_decoding import Picture, UnreadableImages, find_unreadable, map_pictures, write_pictures
from dign.data.cache import Store, create_store, explain_disk_errors, open_built_store, open_store
from dign.data.cached_source import remove_other_stores
from dign.data.dataset import Check, OfficialSplits
from dign.data.decoding import find_common_size, read_upright_size, replace_unprintable
from dign.data.framing import MIDDLE, Framing
from dign.data.names import FOLDER_PREFIX
from dign.data.pictures import Pictures
from dign.data.splits import split_stratified

EXTENSIONS = tuple(
    f".{name}"
    for names in ("jpg jpeg jpe jfif mpo", "png bmp gif webp avif", "tif tiff jp2", "ppm pgm pbm pnm")
    for name in names.split()
)
FOREIGN = (".heic", ".heif", ".jxl", ".psd", ".svg", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".orf", ".rw2")
"""Pictures that cannot be decoded. Skipping them would silently leave out half of the photographs of some phones."""
TEST_FRACTION = 0.2
SKIP = "skip_unreadable"
DECODING = 2
"""Version of the decoding: raise it when decoding changes, so that older caches are not used."""


@dataclass(frozen=True)
class Layout:
    """The contents of a folder: class names, and the image files of every split in order."""

    classes: tuple[str, ...]
    splits: dict[str, list[Picture]]


@dataclass(frozen=True)
class Folder:
    """Images in `path`: train/ with test/ or val/ (with both, val/ is the validation split), each with one folder per
    class; or folders of classes alone, of which a fixed fifth of every class is the test split.

    With `skip_unreadable`, images that cannot be read are treated as though they were not there. `framing` says how
    pictures are brought to one size.
    """

    path: str
    skip_unreadable: bool = False
    framing: Framing = MIDDLE

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits:
        folder = self._folder()
        layout = scan_folder(folder)
        prefix = f"{self._prefix(folder)}-{f'{self.framing.key}{size}px' if size else 'native'}"
        target = root / f"{prefix}-{fingerprint(folder, layout)}"
        store = open_store(target)
        if store is None:
            with explain_disk_errors(root), wait_for_lock(root / prefix, report):
                if open_store(target) is None:
                    self._build(folder, layout, size, target, report)
                    remove_other_stores(target, f"{prefix}-")
            store = open_built_store(target)
        skipped = _read_skipped(store)
        if skipped and not self.skip_unreadable:
            raise _make_unreadable(folder, skipped)
        if skipped:
            layout = scan_folder(folder, without=_find_paths(folder, layout, skipped))
        return replace(_attach_pictures(store.read_splits(), layout), skipped=tuple(skipped))

    def _build(self, folder: Path, layout: Layout, size: int | None, target: Path, report: ProgressCallback) -> None:
        try:
            self._write(folder, layout, size, target, report, {})
        except UnreadableImages as error:
            skipped = {os.path.relpath(name, folder): reason for name, reason in error.reasons.items()}
            skipped |= {name: "convert it to JPEG" for name in skipped if _is_foreign(name)}
            if not self.skip_unreadable:
                raise _make_unreadable(folder, skipped) from error
            # the split is cut again, as it will be once these files are removed
            self._write(folder, scan_folder(folder, without=error.reasons), size, target, report, skipped)

    def _write(
        self,
        folder: Path,
        layout: Layout,
        size: int | None,
        target: Path,
        report: ProgressCallback,
        skipped: Mapping[str, str],
    ) -> None:
        image_size = (size, size) if size else _find_one_size(folder, layout, report)
        shown = {replace_unprintable(name): reason for name, reason in skipped.items()}
        classes, origin = map(replace_unprintable, layout.classes), replace_unprintable(folder)
        with create_store(target, name=f"folder:{folder}", classes=classes, origin=origin, skipped=shown) as writer:
            write_pictures(writer, layout.splits, image_size, self.framing if size else None, report)

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None:
            raise UserError("A folder of images is used where it is: it cannot be fetched from elsewhere.")
        folder = self._folder()
        scan_folder(folder)
        for path in root.glob(f"{self._prefix(folder)}-*"):
            if not _is_intact(path, report):
                shutil.rmtree(path)
        return f"{folder} need not be fetched: its images are decoded into {root} on first use."

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        """The checksums of everything that was decoded from this folder."""
        folder = self._folder()
        current = fingerprint(folder, scan_folder(folder))
        checks = []
        for path in sorted(root.glob(f"{self._prefix(folder)}-*-{current}")):
            store = open_store(path)
            for check in store.verify(report) if store else ():
                checks.append(Check(f"{check.what} ({path.name})", check.good, check.against))
        if not checks:
            name = quote_path(f"folder:{self.path}")
            raise UserError(f"The current contents of {folder} have not been decoded yet: run `dign data show {name}`.")
        return checks

    def _folder(self) -> Path:
        folder = Path(self.path).expanduser()
        if not self.path or not folder.is_dir():
            raise UserError(
                f"There is no folder '{replace_unprintable(self.path)}': give an existing one after 'folder:'."
            )
        return folder.resolve()

    def _prefix(self, folder: Path) -> str:
        """A name for the cache: readable, and one for each place on disk."""
        readable = re.sub(r"[^A-Za-z0-9]+", "-", folder.name).strip("-")[:40]
        return f"folder-{readable}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"


def _is_intact(path: Path, report: ProgressCallback) -> bool:
    try:
        store = open_store(path)
        return store is not None and all(check.good for check in store.verify(report))
    except UserError:
        return False


def scan_folder(folder: Path, without: Collection[str] = ()) -> Layout:
    """Find the splits, the classes and the image files (those but `without`), without opening any of them."""
    if not _has_splits(folder):
        classes = _classes(folder)
        return Layout(classes, _cut_test(_pictures(folder, classes, without)))
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
    return Layout(classes, {name: _pictures(place, classes, without) for name, place in places.items()})


def fingerprint(folder: Path, layout: Layout) -> str:
    """Changes when any file's name, size or time of change does."""
    sha = hashlib.sha256(f"{DECODING}".encode())
    for split, pictures in layout.splits.items():
        for picture in pictures:
            size, changed = _stat(picture.name)
            place = os.fsencode(os.path.relpath(picture.name, folder))
            sha.update(b"%s\0%s\0%d\0%d\0" % (split.encode(), place, size, changed))
    return sha.hexdigest()[:16]


def _stat(name: str) -> tuple[int, int]:
    """Size and time of change; zeros for a file that is not there (a broken link), which decoding will report."""
    try:
        state = os.stat(name)
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
    return not name.startswith(FOLDER_PREFIX) or _has_splits(Path(name.removeprefix(FOLDER_PREFIX)).expanduser())


def _has_splits(folder: Path) -> bool:
    """Whether there are classes in train/; a train/ with pictures alone is itself a class."""
    return (folder / "train").is_dir() and any(map(_is_class, os.scandir(folder / "train")))


def _is_class(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir() and not entry.name.startswith(".")


def _pictures(place: Path, classes: Sequence[str], without: Collection[str]) -> list[Picture]:
    strange = sorted({entry.name for entry in os.scandir(place) if _is_class(entry)} - set(classes))
    if strange:
        raise UserError(f"{place / replace_unprintable(strange[0])} is a class that the training images do not have.")
    found = []
    for label, name in enumerate(classes):
        if not (place / name).is_dir():
            continue  # a test split need not hold every class
        files = [path for path in _walk(place / name) if str(path) not in without]
        members = [Picture(str(path), path, label) for path in files]
        if not members:
            what = "no images that can be read" if without else "no images"
            raise UserError(
                f"The class folder {place / replace_unprintable(name)} contains {what}: fill it or remove it."
            )
        found += members
    if not found:
        raise UserError(f"{place} contains no images.")
    return found


def find_pictures(place: Path) -> Iterator[Path]:
    """Yield the image files in a folder and below it, without hidden ones, in the order of their names."""
    for path in _walk(place):
        if _is_foreign(path):
            what, extension = replace_unprintable(path), path.suffix.lower()
            raise UserError(f"{what} cannot be decoded: convert {extension} files to JPEG, or move them elsewhere.")
        yield path


def _walk(place: Path) -> Iterator[Path]:
    """Yield the pictures in a folder and below it, also those in formats that cannot be decoded."""
    for parent, folders, files in os.walk(place):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            extension = os.path.splitext(name)[1].lower()
            if extension in (*EXTENSIONS, *FOREIGN) and not name.startswith("."):
                yield Path(parent, name)


def _is_foreign(path: Path | str) -> bool:
    return os.path.splitext(path)[1].lower() in FOREIGN


def _cut_test(pictures: list[Picture]) -> dict[str, list[Picture]]:
    labels = torch.tensor([picture.label for picture in pictures])
    kept, cut = split_stratified(labels, TEST_FRACTION, seed=0, purpose="test split")
    return {"train": [pictures[index] for index in kept], "test": [pictures[index] for index in cut]}


def _make_unreadable(folder: Path, skipped: Mapping[str, str]) -> UnreadableImages:
    whole = {str(folder / name): reason for name, reason in skipped.items()}
    return UnreadableImages(whole, advice=f", or set `{SKIP}` to leave {'it' if len(whole) == 1 else 'them'} out")


def _read_skipped(store: Store) -> dict[str, str]:
    """What is wrong with the images that a store was built without, by their place in the folder."""
    skipped = store.info.get("skipped", {})
    if not isinstance(skipped, dict) or not all(isinstance(reason, str) for reason in skipped.values()):
        raise store.make_damage_error(store.path / "info.json")
    return skipped


def _find_paths(folder: Path, layout: Layout, shown: Collection[str]) -> set[str]:
    """The paths of files that are listed as they are displayed."""
    pictures = (picture for split in layout.splits.values() for picture in split)
    return {each.name for each in pictures if replace_unprintable(os.path.relpath(each.name, folder)) in shown}


def _attach_pictures(official: OfficialSplits, layout: Layout) -> OfficialSplits:
    """The splits with the files that their images were made from."""
    found = {name: Pictures.from_paths(picture.name for picture in split) for name, split in layout.splits.items()}
    splits = {name: replace(getattr(official, name), pictures=pictures) for name, pictures in found.items()}
    return replace(official, **splits)


def _find_one_size(folder: Path, layout: Layout, report: ProgressCallback) -> tuple[int, int]:
    """Find the size that all images have, from their headers."""
    pictures = [picture for split in layout.splits.values() for picture in split]
    sizes: list[tuple[int, int]] = []
    reasons: dict[str, str] = {}
    for done, size in enumerate(map_pictures(lambda picture: read_upright_size(picture.file), pictures, reasons), 1):
        sizes += [size] if size else []
        report("Looking at image sizes", done, len(pictures))
    if reasons:  # there may be more whose header is sound
        raise UnreadableImages(find_unreadable(pictures))
    common = find_common_size(sizes)
    if common is None:
        low, high = min(sizes), max(sizes)
        raise UserError(
            f"The images in {folder} have different sizes (from {low[0]}x{low[1]} to {high[0]}x{high[1]}, "
            "height x width): choose a size, for example 64."
        )
    return common
