"""The base of sources of the user's own pictures: decoded once into the cache, or, where they are too many, always."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from dign.core.errors import UserError
from dign.core.files import read_json, write_json
from dign.core.locks import wait_for_lock
from dign.core.progress import ProgressCallback
from dign.data.bulk_decoding import UnreadableImages, find_unreadable, map_pictures, write_pictures
from dign.data.cache import Store, create_store, explain_disk_errors, mark_used, open_built_store, open_store
from dign.data.cached_source import remove_other_stores
from dign.data.dataset import OfficialSplits, Split
from dign.data.decoded_images import DecodedImages
from dign.data.decoding import find_common_size, read_upright_size, replace_unprintable
from dign.data.framing import MIDDLE, Framing
from dign.data.layout import Layout

CACHES = ("auto", "on", "off")
MOST_OF_DISK = 0.25
"""The share of the free disk that decoded images may take before they are decoded whenever they are needed."""
SKIP = "skip_unreadable"


@dataclass(frozen=True)
class PictureSource:
    """Encoded pictures at a place that the user names.

    Args:
        path: The place.
        skip_unreadable: Treat images that cannot be read as though they were not there.
        framing: How pictures are brought to one size.
        cache: Whether decoded images are kept: "on", "off", or "auto", which keeps them where they take at most a
            quarter of the free disk. What is read is the same.
    """

    path: str
    skip_unreadable: bool = False
    framing: Framing = MIDDLE
    cache: str = "auto"

    def locate(self) -> Path:
        """The place, checked and absolute."""
        raise NotImplementedError

    def scan(self, place: Path, report: ProgressCallback, without: Collection[str] = ()) -> Layout:
        """Find the splits, the classes and the pictures (those but `without`, by name); none of them is decoded."""
        raise NotImplementedError

    def prefix(self, place: Path) -> str:
        """A name for the cache: readable, and one for each place on disk."""
        raise NotImplementedError

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits:
        place = self.locate()
        layout = self.scan(place, report)
        if size and self._is_too_large(layout, size, root):
            return self._read_uncached(root, place, layout, size, report)
        prefix = f"{self.prefix(place)}-{f'{self.framing.key}{size}px' if size else 'native'}"
        target = root / f"{prefix}-{layout.fingerprint}"
        store = open_store(target)
        if store is None:
            with explain_disk_errors(root), wait_for_lock(root / prefix, report):
                if open_store(target) is None:
                    self._build(place, layout, size, target, report)
                    remove_other_stores(target, f"{prefix}-")
            store = open_built_store(target)
        mark_used(store.path / "info.json")
        skipped = _read_skipped(store)
        if skipped and not self.skip_unreadable:
            raise _make_unreadable(place, skipped)
        if skipped:
            layout = self.scan(place, report, _find_names(place, layout, skipped))
        official = store.read_splits()
        splits = {
            name: replace(getattr(official, name), pictures=found.pictures) for name, found in layout.splits.items()
        }
        return replace(official, **splits, skipped=tuple(skipped), enlarged=int(store.info.get("enlarged", 0)))

    def _is_too_large(self, layout: Layout, size: int, root: Path) -> bool:
        if self.cache != "auto":
            return self.cache == "off"
        existing = next(parent for parent in (root, *root.absolute().parents) if parent.exists())
        images = sum(map(len, layout.splits.values()))
        return images * 3 * size * size > MOST_OF_DISK * shutil.disk_usage(existing).free

    def _read_uncached(
        self, root: Path, place: Path, layout: Layout, size: int, report: ProgressCallback
    ) -> OfficialSplits:
        """Images that are decoded when they are asked for. Those that cannot be read are looked for only to skip them,
        and remembered."""
        skipped: dict[str, str] = {}
        if self.skip_unreadable:
            memory = root / f".{self.prefix(place)}-{layout.fingerprint}-unreadable.json"
            if not memory.is_file():
                with explain_disk_errors(root):
                    write_json(memory, _check_all(layout, report))
            skipped = read_json(memory)
        if skipped:
            layout = self.scan(place, report, skipped)
        splits = {
            name: Split(
                DecodedImages(found.pictures, (size, size), self.framing),
                torch.from_numpy(found.labels),
                found.pictures,
            )
            for name, found in layout.splits.items()
        }
        classes = tuple(map(replace_unprintable, layout.classes))
        shown = tuple(replace_unprintable(os.path.relpath(name, place)) for name in skipped)
        train, test, validation = splits["train"], splits["test"], splits.get("validation")
        location = f"{place}, decoded as it is read"
        return OfficialSplits(classes, train, test, validation, location=location, skipped=shown)

    def _build(self, place: Path, layout: Layout, size: int | None, target: Path, report: ProgressCallback) -> None:
        try:
            self._write(place, layout, size, target, report, {})
        except UnreadableImages as error:
            self._check_unchanged(place, layout, report)
            skipped = {os.path.relpath(name, place): reason for name, reason in error.reasons.items()}
            if not self.skip_unreadable:
                raise _make_unreadable(place, skipped) from error
            # the split is cut again, as it will be once these files are removed
            self._write(place, self.scan(place, report, error.reasons), size, target, report, skipped)

    def _write(
        self,
        place: Path,
        layout: Layout,
        size: int | None,
        target: Path,
        report: ProgressCallback,
        skipped: Mapping[str, str],
    ) -> None:
        image_size = (size, size) if size else _find_one_size(place, layout, report)
        shown = {replace_unprintable(name): reason for name, reason in skipped.items()}
        classes, origin = map(replace_unprintable, layout.classes), replace_unprintable(place)
        with create_store(target, name=self.name, classes=classes, origin=origin, skipped=shown) as writer:
            write_pictures(writer, layout.splits, image_size, self.framing if size else None, report)
            if not skipped:
                self._check_unchanged(place, layout, report)

    @property
    def name(self) -> str:
        """The name of the data set, as the user gives it."""
        raise NotImplementedError

    def _check_unchanged(self, place: Path, layout: Layout, report: ProgressCallback) -> None:
        if self.scan(place, report).fingerprint != layout.fingerprint:
            raise UserError(
                f"{place} has changed while it was read, and nothing was stored: try again when nothing writes to it."
            )


def make_prefix(kind: str, place: Path) -> str:
    """A name for the cache: the kind of source, readable letters of the place, and a hash of it."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", place.name).strip("-")[:40]
    return f"{kind}-{readable}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"


def _check_all(layout: Layout, report: ProgressCallback) -> dict[str, str]:
    reasons: dict[str, str] = {}
    for pictures in layout.splits.values():
        reasons |= find_unreadable(pictures, report)
    return reasons


def _find_names(place: Path, layout: Layout, shown: Collection[str]) -> set[str]:
    """The names of pictures that are listed as they are displayed."""
    pictures = (picture for split in layout.splits.values() for picture in split)
    return {each.name for each in pictures if replace_unprintable(os.path.relpath(each.name, place)) in shown}


def _make_unreadable(place: Path, skipped: Mapping[str, str]) -> UnreadableImages:
    whole = {os.path.normpath(place / name): reason for name, reason in skipped.items()}
    return UnreadableImages(whole, advice=f", or set `{SKIP}` to leave {'it' if len(whole) == 1 else 'them'} out")


def _read_skipped(store: Store) -> dict[str, str]:
    """What is wrong with the images that a store was built without, by their place in the folder."""
    skipped = store.info.get("skipped", {})
    if not isinstance(skipped, dict) or not all(isinstance(reason, str) for reason in skipped.values()):
        raise store.make_damage_error(store.path / "info.json")
    return skipped


def _find_one_size(place: Path, layout: Layout, report: ProgressCallback) -> tuple[int, int]:
    """Find the size that all images have, from their headers."""
    sizes: list[tuple[int, int]] = []
    reasons: dict[str, str] = {}
    total, done = sum(map(len, layout.splits.values())), 0
    for pictures in layout.splits.values():
        for size in map_pictures(lambda picture: read_upright_size(picture.read()), pictures, reasons):
            sizes += [size] if size else []
            done += 1
            report("Looking at image sizes", done, total)
    if reasons:  # there may be more whose header is sound
        raise UnreadableImages(_check_all(layout, report))
    common = find_common_size(sizes)
    if common is None:
        low, high = min(sizes), max(sizes)
        raise UserError(
            f"The images in {place} have different sizes (from {low[0]}x{low[1]} to {high[0]}x{high[1]}, "
            "height x width): choose a `size` in pixels; for photographs 128 is a good start."
        )
    return common
