"""The base of sources that are stored in the cache: find, build once, open, resize, verify."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dign.core.errors import UserError
from dign.core.locks import wait_for_lock
from dign.core.progress import ProgressCallback
from dign.data.cache import Store, create_store, explain_disk_errors, mark_used, open_built_store, open_store
from dign.data.dataset import Check, OfficialSplits
from dign.data.decoding import resize
from dign.data.download import remove_leftovers


class CachedSource:
    """A published data set.

    Subclasses say which files of the user they accept (`candidates`), how those become a store (`build`), how to
    `download` them, and what the arrays must be (`check`).
    """

    name: str
    title: str

    @property
    def placing(self) -> str:
        """What the user can put into the cache folder if no download works."""
        raise NotImplementedError

    @property
    def download_files(self) -> tuple[str, ...]:
        """The names of the files that a download creates."""
        raise NotImplementedError

    def candidates(self, root: Path) -> list[Path]:
        """Folders and archives in the official form that the user may have put into the cache folder."""
        raise NotImplementedError

    def build(self, origin: Path, target: Path, report: ProgressCallback, taken_from: str) -> None:
        """Turn a folder or an archive in the official form into the store `target`, or raise a `UserError`.

        `taken_from` is recorded as where the data came from.
        """
        raise NotImplementedError

    def download(self, root: Path, target: Path, report: ProgressCallback) -> str:
        """Fetch the data and build the store `target`; returns where it came from."""
        raise NotImplementedError

    def check(self, store: Store, report: ProgressCallback) -> list[Check]:
        return store.verify(report)

    def read(self, root: Path, size: int | None, report: ProgressCallback) -> OfficialSplits:
        return self.open(root, size, report).read_splits()

    def open(self, root: Path, size: int | None, report: ProgressCallback) -> Store:
        target = root / self.name
        store = open_store(target)
        if store is None:
            self._build_from_placed_files(root, target, report)
            store = open_built_store(target)
        mark_used(store.path / "info.json")
        if size is None or store.info["arrays"]["train_images"]["shape"][-2:] == [size, size]:
            return store
        return resize_store(store, size, report)

    def _build_from_placed_files(self, root: Path, target: Path, report: ProgressCallback) -> None:
        origin = self._find_placed_files(root)
        if origin is None:
            raise UserError(f"{self.title} is not in {root}: run `dign data fetch {self.name}`.")
        with explain_disk_errors(root), wait_for_lock(target, report):
            if open_store(target) is None:
                self.build(origin, target, report, str(origin))

    def _find_placed_files(self, root: Path) -> Path | None:
        return next((path for path in self.candidates(root) if path.exists()), None)

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None and not origin.exists():
            raise UserError(f"There is no {origin} to take {self.title} from.")
        target = root / self.name
        with explain_disk_errors(root), wait_for_lock(target, report):
            sentence = self._fetch(root, target, report, origin)
            remove_leftovers(root, *self.download_files)
        return sentence

    def _fetch(self, root: Path, target: Path, report: ProgressCallback, origin: Path | None) -> str:
        state = self._state(target, report) if origin is None else "unwanted"
        if state == "intact":
            return f"{self.title} is already in {target} and verified."
        again = " The copy that was there before was damaged." if state == "damaged" else ""
        placed = origin or self._find_placed_files(root)
        if placed is not None:
            self.build(placed, target, report, str(placed))
            return f"{self.title} was read from {placed} into {target}.{again}"
        taken_from = self.download(root, target, report)
        return f"{self.title} was fetched from {taken_from} into {target} and verified.{again}"

    def _state(self, target: Path, report: ProgressCallback) -> str:
        try:
            store = open_store(target)
            if store is None:
                return "missing"
            return "intact" if all(check.good for check in self.check(store, report)) else "damaged"
        except UserError:
            return "damaged"

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        return self.check(self.open(root, None, report), report)


def resize_store(store: Store, size: int, report: ProgressCallback) -> Store:
    """Return the store beside `store` with its images at size x size, which is written if it does not exist."""
    target = store.path.with_name(f"{store.path.name}-{size}px-{store.identity}")
    made = open_store(target)
    if made is not None:
        mark_used(made.path / "info.json")
        return made
    with explain_disk_errors(target.parent), wait_for_lock(target.with_name(f"{store.path.name}-{size}px"), report):
        if open_store(target) is None:
            _write_resized(store, size, target, report)
            remove_other_stores(target, f"{store.path.name}-{size}px-")
    return open_built_store(target)


def _write_resized(store: Store, size: int, target: Path, report: ProgressCallback) -> None:
    splits = [name.removesuffix("_labels") for name in store.info["arrays"] if name.endswith("_labels")]
    facts = {key: value for key, value in store.info.items() if key not in ("format", "arrays")}
    total, done = sum(len(store.array(f"{split}_labels")) for split in splits), 0

    def count(images: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        nonlocal done
        for image in images:
            done += 1
            report(f"Resizing to {size}x{size}", done, total)
            yield image

    with create_store(target, **facts) as writer:
        for split in splits:
            images, labels = store.array(f"{split}_images"), store.array(f"{split}_labels")
            writer.write_split(split, count(resize(images, size)), labels, (size, size))


def remove_other_stores(keep: Path, prefix: str) -> None:
    """Remove older stores of the same prefix, complete or partial; a process that has one mapped keeps its copy."""
    for pattern in (f"{prefix}*", f".{prefix}*.partial"):
        for path in keep.parent.glob(pattern):
            if path != keep and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
