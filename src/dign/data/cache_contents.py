"""What the cache holds: data sets, copies of photographs and indexes; and removing what is no longer wanted."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dign.core.errors import UserError
from dign.core.files import read_json
from dign.data.cache import open_store
from dign.data.file_index import FOLDER as INDEXES
from dign.data.names import PICTURE_PREFIXES
from dign.data.shrunk_pictures import COPIES as SHRUNK
from dign.data.sources.hugging_face import COPIES as OF_PARQUET

DAY = 24 * 60 * 60


@dataclass(frozen=True)
class CacheEntry:
    """One thing in the cache.

    Attributes:
        name: What it is called there.
        what: What it is, in words.
        data: The data set that it belongs to, as it was named, or the place of the pictures; empty where not known.
        paths: Its files or folders.
        size: Bytes on disk.
        used: When it was last opened, in seconds since 1970.
    """

    name: str
    what: str
    data: str
    paths: tuple[Path, ...]
    size: int
    used: float

    @property
    def days(self) -> float:
        """Days since it was last opened."""
        return max(0.0, time.time() - self.used) / DAY

    def remove(self) -> None:
        """Remove it. What a process has mapped into memory stays readable for that process."""
        for path in self.paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def list_cache(root: Path) -> list[CacheEntry]:
    """Everything that dign keeps in the cache folder `root`, the largest first; other files there are not listed.

    Args:
        root: The cache folder; it need not exist.
    """
    entries = [_describe(path) for path in sorted(root.iterdir())] if root.is_dir() else []
    return sorted((entry for entry in entries if entry), key=lambda entry: -entry.size)


def select_entries(
    entries: Iterable[CacheEntry], names: Iterable[str] = (), unused_days: float | None = None
) -> list[CacheEntry]:
    """Those of these names (of entries, or of data sets), or those that were not opened for so many days.

    Raises:
        UserError: Nothing has one of the names.
    """
    entries, wanted = list(entries), {name: {name, *_write_out(name)} for name in names}
    for name, forms in wanted.items():
        if not any(entry.name in forms or entry.data in forms for entry in entries):
            raise UserError(f"The cache holds nothing called '{name}': `dign data cache` lists what it holds.")
    known = set().union(*wanted.values())
    chosen = [entry for entry in entries if not wanted or entry.name in known or entry.data in known]
    return [entry for entry in chosen if unused_days is None or entry.days >= unused_days]


def _write_out(name: str) -> list[str]:
    """`folder:photos` with the whole path of the folder, as data sets are called in the cache."""
    prefix = next((prefix for prefix in PICTURE_PREFIXES if name.startswith(prefix)), None)
    if prefix is None:
        return []
    place = os.path.abspath(os.path.expanduser(name.removeprefix(prefix)))
    return [f"{prefix}{place}", f"{prefix}{os.path.realpath(place)}"]


def _describe(path: Path) -> CacheEntry | None:
    """None for what is not an entry: locks, downloads that are not finished, files of others."""
    if path.is_dir() and path.name == INDEXES:
        return _entry(path.name, "where pictures are in shards and tables", "", [path])
    if path.is_dir():
        try:
            store = open_store(path)
        except UserError:
            return _entry(path.name, "decoded images, damaged", "", [path])
        return _entry(path.name, "decoded images", store.info["name"], [path]) if store else None
    for prefix, what in ((SHRUNK, "shrunk photographs"), (OF_PARQUET, "pictures of a Parquet file")):
        if path.suffix == ".bin" and path.name.startswith(prefix):
            files = [path.with_suffix(suffix) for suffix in (".bin", ".npy", ".json")]
            return _entry(path.stem, what, _read_origin(path.with_suffix(".json")), files)
    return None


def _read_origin(file: Path) -> str:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(read_json(file)["origin"])
    return ""


def _entry(name: str, what: str, data: str, paths: Iterable[Path]) -> CacheEntry:
    there = tuple(path for path in paths if path.exists())
    states = [file.stat() for path in there for file in _walk(path)]
    used = max((state.st_mtime for state in states), default=0.0)
    return CacheEntry(name, what, data, there, sum(state.st_size for state in states), used)


def _walk(path: Path) -> Iterator[Path]:
    """The files in a folder, or the file."""
    yield from (each for each in path.rglob("*") if each.is_file()) if path.is_dir() else (path,)
