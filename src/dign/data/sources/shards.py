"""WebDataset shards: tar files of pictures with their labels beside them, read where they are."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import tarfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from dign.core.errors import UserError, join_names
from dign.core.progress import ProgressCallback
from dign.data.dataset import Check
from dign.data.decoding import replace_unprintable
from dign.data.file_index import FileIndex, index_once
from dign.data.layout import LabeledPictures, Layout, cut_test
from dign.data.names import SHARDS_PREFIX
from dign.data.picture_source import PictureSource, make_prefix
from dign.data.pictures import Pictures
from dign.data.sources.folder import LISTED

CLASS_NAMES = "classes.txt"
MAX_LABEL = 2**16
"""Bytes of a label."""
MAX_SHARDS = 100_000
SPLITS = {"train": "train", "test": "test", "val": "validation", "valid": "validation", "validation": "validation"}
"""Words in the names of shards, and the split that they mean."""


@dataclass(frozen=True)
class Shards(PictureSource):
    """Pictures in uncompressed tar files, whose names the pattern `path` lists: `*`, `?`, `{000..099}` and `{a,b}`.

    Members with one name up to its first dot belong together: a picture (`.jpg`, `.png`, ...) and its label (`.cls`, a
    number or a word, or `.json` with "cls" or "label"); without one, the folder of the member is its class. Shards with
    train, test and val in their names are those splits; otherwise a fixed fifth of every class is the test split. Names
    of numbered classes may be in a file classes.txt beside the shards, one a line. Nothing is unpacked or unpickled.
    """

    @property
    def name(self) -> str:
        return f"{SHARDS_PREFIX}{self.path}"

    def locate(self) -> Path:
        if not self.path:
            raise UserError("Which shards? Give a pattern after 'wds:', for example wds:photos-{000..009}.tar.")
        return Path(os.path.abspath(os.path.expanduser(self.path)))

    def prefix(self, place: Path) -> str:
        return make_prefix("wds", place)

    def scan(self, place: Path, report: ProgressCallback, without: Collection[str] = ()) -> Layout:
        shards = find_shards(str(place))
        sha = hashlib.sha256()
        found: dict[str, _Samples] = {}
        count = 0
        for shard, split in _assign_splits(shards).items():
            state = os.stat(shard)
            sha.update(b"%s\0%d\0%d\0" % (os.fsencode(shard), state.st_size, state.st_mtime_ns))
            samples = found.setdefault(split, _Samples())
            index = index_once(Path(shard), partial(_index, shard, state.st_size, report, count))
            count += len(index)
            report("Indexing images", count, None)
            places = zip(index.labels.tolist(), index.start.tolist(), index.size.tolist(), strict=True)
            for label, start, size in places:
                if not without or f"{shard} (at byte {start})" not in without:
                    samples.add(shard, index.classes[label], start, size)
        numbers = _number_classes(found)
        splits = {name: samples.make(numbers) for name, samples in found.items()}
        classes = _name_classes(numbers, Path(shards[0]).parent / CLASS_NAMES)
        layout = Layout(classes, splits, sha.hexdigest()[:16])
        return layout if "test" in splits else cut_test(layout)

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None:
            raise UserError("Shards are used where they are: they cannot be fetched from elsewhere.")
        layout = self.scan(self.locate(), report)
        return f"{sum(map(len, layout.splits.values()))} pictures need not be fetched: they are read where they are."

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        raise UserError("Shards have no recorded checksums to compare with.")


@dataclass
class _Samples:
    """The pictures of a split as they are found."""

    files: dict[str, int] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    places: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, shard: str, label: str, start: int, size: int) -> None:
        self.places.append((self.files.setdefault(shard, len(self.files)), start, size))
        self.labels.append(label)

    def make(self, numbers: dict[str, int]) -> LabeledPictures:
        file, start, size = np.array(self.places, np.int64).reshape(-1, 3).T
        labels = np.array([numbers[label] for label in self.labels], np.int64)
        return LabeledPictures(Pictures.from_parts(self.files, file, start, size), labels)


def find_shards(pattern: str) -> list[str]:
    """The files that a pattern lists, sorted.

    Raises:
        UserError: There is none, or one that the pattern names is missing.
    """
    found: list[str] = []
    for each in expand_braces(pattern):
        files = sorted(glob.glob(each))
        if not files:
            raise UserError(f"There is no shard {replace_unprintable(each)}: give a pattern of existing .tar files.")
        found += files
    compressed = [file for file in found if not file.endswith(".tar")]
    if compressed:
        raise UserError(f"{replace_unprintable(compressed[0])} is not a shard: expected uncompressed .tar files.")
    return sorted(set(found))


def expand_braces(pattern: str) -> Iterator[str]:
    """Expand the braces of a pattern, as a shell does.

    >>> list(expand_braces("x-{08..10}.{tar,zip}"))
    ['x-08.tar', 'x-08.zip', 'x-09.tar', 'x-09.zip', 'x-10.tar', 'x-10.zip']
    """
    match = re.search(r"\{(\d+)\.\.(\d+)\}|\{([^{}]*,[^{}]*)\}", pattern)
    if match is None:
        yield pattern
        return
    if match[3] is None:
        first, last = int(match[1]), int(match[2])
        if not 0 <= last - first < MAX_SHARDS:
            raise UserError(f"The shards {match[0]} are none, or more than {MAX_SHARDS}.")
        words = [f"{number:0{len(match[1])}d}" for number in range(first, last + 1)]
    else:
        words = match[3].split(",")
    for word in words:
        yield from expand_braces(pattern[: match.start()] + word + pattern[match.end() :])


def _assign_splits(shards: list[str]) -> dict[str, str]:
    """The split of every shard, from its name; all are training shards where not all names say it."""
    found = {}
    for shard in shards:
        words = re.findall("[a-z]+", os.path.basename(shard).lower())
        found[shard] = next((SPLITS[word] for word in words if word in SPLITS), "")
    present = set(found.values())
    if not {"train", "test"} <= present and {"train", "validation"} <= present:  # as in a folder with train/ and val/
        found = {shard: "test" if split == "validation" else split for shard, split in found.items()}
    if {"train", "test"} <= present | set(found.values()):
        unknown = [shard for shard, split in found.items() if not split]
        if unknown:
            raise UserError(
                f"{replace_unprintable(unknown[0])} has neither train, test nor val in its name, as others have: "
                "rename it, or leave it out of the pattern."
            )
        return found
    return dict.fromkeys(shards, "train")


def _index(shard: str, size: int, report: ProgressCallback, before: int) -> FileIndex:
    """The pictures of a shard; `before` were found in others."""
    names: list[str] = []
    places: list[tuple[int, int]] = []
    for name, *place in _read_members(shard, size):
        names.append(name)
        places.append((place[0], place[1]))
        if len(names) % 5_000 == 0:
            report("Indexing images", before + len(names), None)
    start, sizes = zip(*places, strict=True) if places else ((), ())
    return FileIndex.of(names, start, sizes)


def _read_members(shard: str, size: int) -> Iterator[tuple[str, int, int]]:
    """Yield label, first byte and bytes of every picture of a shard; of its contents only labels are read."""
    key, picture, label = "", (0, 0), ""
    try:
        with open(shard, "rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
            for member in archive:
                archive.members = []  # type: ignore[attr-defined]  # tarfile remembers every member otherwise
                if not member.isreg() or os.path.basename(member.name).startswith("."):
                    continue
                folder, base = os.path.split(member.name)
                stem, _, extension = base.partition(".")
                if os.path.join(folder, stem) != key:
                    if picture[1]:
                        yield _name_class(shard, key, label), *picture
                    key, picture, label = os.path.join(folder, stem), (0, 0), ""
                if member.offset_data + member.size > size:
                    raise tarfile.ReadError("it ends too early")
                extension = extension.lower()
                if f".{extension}" in LISTED:
                    picture = member.offset_data, member.size
                elif extension in ("cls", "json"):
                    label = _read_label(file.fileno(), member, extension) or label
            if picture[1]:
                yield _name_class(shard, key, label), *picture
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise UserError(f"The shard {replace_unprintable(shard)} is damaged ({error}): fetch it again.") from error


def _read_label(file: int, member: tarfile.TarInfo, extension: str) -> str:
    if member.size > MAX_LABEL:
        return ""
    text = os.pread(file, member.size, member.offset_data).decode("utf-8", "replace").strip()
    if extension == "cls":
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict):
            found = value.get("cls", value.get("label", ""))
            return str(found) if isinstance(found, str | int) else ""
    return ""


def _name_class(shard: str, key: str, label: str) -> str:
    name = label or os.path.dirname(key)
    if not name:
        raise UserError(
            f"{replace_unprintable(key)} in {replace_unprintable(shard)} has no label: expected a member "
            f"{replace_unprintable(key)}.cls or .json, or a folder."
        )
    return name


def _number_classes(found: dict[str, _Samples]) -> dict[str, int]:
    """The number of every label: numbers keep their value, words are sorted."""
    labels = {label for samples in found.values() for label in samples.labels}
    if not labels:
        raise UserError("The shards contain no pictures.")
    unknown = labels - set(found["train"].labels)
    if unknown:
        names = join_names([replace_unprintable(name) for name in sorted(unknown)])
        raise UserError(f"The training shards have no pictures of {names}, but others have: add or remove them.")
    if all(re.fullmatch(r"\d{1,6}", label) for label in labels):
        return {label: int(label) for label in labels}
    return {label: number for number, label in enumerate(sorted(labels))}


def _name_classes(numbers: dict[str, int], file: Path) -> tuple[str, ...]:
    """The names of the classes: the lines of a file, if there is one, else the labels themselves."""
    count = 1 + max(numbers.values())
    if count < 2:
        raise UserError("The shards must contain pictures of at least two classes.")
    names = {number: label for label, number in numbers.items()}
    if not file.is_file():
        return tuple(names.get(number, str(number)) for number in range(count))
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    lines = [line.strip() for line in lines if line.strip()]
    if len(lines) < count:
        raise UserError(f"{file} names {len(lines)} classes, but the shards have labels up to {count - 1}.")
    return tuple(lines)
