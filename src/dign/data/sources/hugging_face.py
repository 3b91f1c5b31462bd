"""Data sets of Hugging Face on disk: Arrow files are read where they are, the pictures of Parquet files copied once."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dign.core.errors import UserError
from dign.core.files import replace_file, write_json
from dign.core.locks import wait_for_lock
from dign.core.progress import ProgressCallback
from dign.data.cache import cache_root, explain_disk_errors, mark_used
from dign.data.dataset import Check
from dign.data.decoding import replace_unprintable
from dign.data.file_index import FileIndex, index_once
from dign.data.layout import LabeledPictures, Layout, cut_test
from dign.data.names import HUGGING_FACE_PREFIX
from dign.data.picture_source import PictureSource, make_prefix
from dign.data.pictures import Pictures

COPIES = "hf-pictures-"
"""How the names of copied pictures begin in the cache."""
SPLITS = {"train": "train", "test": "test", "validation": "validation", "valid": "validation", "val": "validation"}


@dataclass(frozen=True)
class HuggingFace(PictureSource):
    """The folder of a data set: as `save_to_disk` writes it, or as the hub has it, with Parquet files whose names begin
    with the split. One column holds pictures, one their classes (`ClassLabel`). Nothing of it is executed.
    """

    @property
    def name(self) -> str:
        return f"{HUGGING_FACE_PREFIX}{self.path}"

    def locate(self) -> Path:
        folder = Path(self.path).expanduser()
        if not self.path or not folder.is_dir():
            raise UserError(
                f"There is no folder '{replace_unprintable(self.path)}': give one of a downloaded or saved data set "
                "after 'hf:'."
            )
        return folder.resolve()

    def prefix(self, place: Path) -> str:
        return make_prefix("hf", place)

    def scan(self, place: Path, report: ProgressCallback, without: Collection[str] = ()) -> Layout:
        _import_pyarrow()
        found = _find_files(place)
        sha = hashlib.sha256()
        for file in (file for files in found.values() for file in files):
            state = file.stat()
            sha.update(b"%s\0%d\0%d\0" % (os.fsencode(file), state.st_size, state.st_mtime_ns))
        tables = {split: [_open_table(file, report) for file in files] for split, files in found.items()}
        names = [table.index.classes for each in tables.values() for table in each]
        if any(classes != names[0] for classes in names):
            raise UserError(f"The files in {place} name different classes: keep those of one data set.")
        splits = {split: _join(each, frozenset(without)) for split, each in tables.items()}
        layout = Layout(names[0], splits, sha.hexdigest()[:16])
        return layout if "test" in splits else cut_test(layout)

    def fetch(self, root: Path, report: ProgressCallback, origin: Path | None = None) -> str:
        if origin is not None:
            raise UserError("A data set on disk is used where it is: it cannot be fetched from elsewhere.")
        layout = self.scan(self.locate(), report)
        return f"{sum(map(len, layout.splits.values()))} pictures need not be fetched: they are read where they are."

    def verify(self, root: Path, report: ProgressCallback) -> list[Check]:
        raise UserError("A data set of Hugging Face has no recorded checksums to compare with.")


@dataclass(frozen=True)
class _Table:
    """The file that the pictures of a table are in, and where."""

    file: Path
    index: FileIndex


def _import_pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise UserError("hf:PATH needs the library pyarrow: pip install 'dign[hf]'.") from error
    return pyarrow


def _find_files(place: Path) -> dict[str, list[Path]]:
    """The files of every split: from the folders that `save_to_disk` makes, else Parquet files by their names."""
    if (place / "dataset_dict.json").is_file():
        folders = {SPLITS.get(each.name, ""): each for each in sorted(place.iterdir()) if each.is_dir()}
        found = {split: sorted(folder.glob("*.arrow")) for split, folder in folders.items() if split}
    elif (place / "dataset_info.json").is_file() and any(place.glob("*.arrow")):
        found = {"train": sorted(place.glob("*.arrow"))}
    else:
        found = {}
        for file in sorted(place.rglob("*.parquet")):
            word = re.match("[a-z]+", file.name.lower())
            found.setdefault(SPLITS.get(word[0] if word else "", "train"), []).append(file)
    found = {split: files for split, files in found.items() if files}
    if "train" not in found:
        raise UserError(
            f"{place} is not a data set of Hugging Face: expected a folder of `save_to_disk`, or Parquet files of a "
            "split named train."
        )
    if "test" not in found and "validation" in found:
        found["test"] = found.pop("validation")
    return found


def _open_table(file: Path, report: ProgressCallback) -> _Table:
    pyarrow = _import_pyarrow()
    try:
        if file.suffix == ".arrow":
            return _Table(file, index_once(file, partial(_index_arrow, file, report)))
        state = file.stat()
        key = hashlib.sha256(b"%s\0%d\0%d" % (os.fsencode(file), state.st_size, state.st_mtime_ns)).hexdigest()[:16]
        copy = cache_root() / f"{COPIES}{key}.bin"
        make = partial(_copy_parquet, file, copy, report)
        index = index_once(file, make)
        if not copy.is_file() or copy.stat().st_size != index.size.sum():  # removed since, or damaged
            make()
        mark_used(copy.with_suffix(".json"))  # not the copy itself: it is known by its time
        return _Table(copy, index)
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{replace_unprintable(file)} cannot be read ({error}): fetch it again.") from error


def _find_columns(schema: Any, file: Path) -> tuple[str, str, tuple[str, ...]]:
    """The names of the columns of pictures and of labels, and the names of the classes."""
    described = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    features = described.get("info", {}).get("features", {})
    kinds = {name: each.get("_type") for name, each in features.items() if isinstance(each, dict)}
    pictures = [name for name, kind in kinds.items() if kind == "Image"]
    labels = [name for name, kind in kinds.items() if kind == "ClassLabel"]
    if len(pictures) != 1 or not labels:
        raise UserError(
            f"{replace_unprintable(file)} has {len(pictures)} columns of pictures and {len(labels)} of classes: "
            "expected one of each (the features Image and ClassLabel)."
        )
    chosen = "label" if "label" in labels else labels[0]
    names = tuple(map(str, features[chosen]["names"]))
    if len(names) < 2:
        raise UserError(f"{replace_unprintable(file)} has fewer than two classes.")
    return pictures[0], chosen, names


def _check_labels(labels: np.ndarray, classes: tuple[str, ...], file: Path) -> np.ndarray:
    if len(labels) and not 0 <= labels.min() <= labels.max() < len(classes):
        raise UserError(f"{replace_unprintable(file)} has labels outside of its {len(classes)} classes.")
    return labels.astype(np.int64)


def _index_arrow(file: Path, report: ProgressCallback) -> FileIndex:
    """Where the pictures of an Arrow file are in it: it is mapped into memory, and nothing of them is read."""
    pyarrow = _import_pyarrow()
    starts, sizes, labels = [], [], []
    with pyarrow.memory_map(str(file)) as source:
        base = source.read_buffer(8).address
        source.seek(0)
        with pyarrow.ipc.open_stream(source) as stream:
            image, label, classes = _find_columns(stream.schema, file)
            for batch in stream:
                start, size = _locate(batch.column(image), base, file)
                starts.append(start)
                sizes.append(size)
                labels.append(batch.column(label).to_numpy(zero_copy_only=False))
                report("Indexing images", sum(map(len, labels)), None)
    joined = [np.concatenate(each) if each else np.empty(0, np.int64) for each in (starts, sizes, labels)]
    return FileIndex(classes, _check_labels(joined[2], classes, file), joined[0], joined[1])


def _locate(column: Any, base: int, file: Path) -> tuple[np.ndarray, np.ndarray]:
    """First byte in the file, and bytes, of each value of a column of encoded pictures."""
    values = column.field("bytes") if column.type.num_fields else column
    if values.null_count:
        raise UserError(f"{replace_unprintable(file)} holds the paths of pictures, not pictures: use folder:PATH.")
    kind = np.int64 if str(values.type) == "large_binary" else np.int32
    _, offsets, data = values.buffers()
    edges = np.frombuffer(offsets, kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    start = edges[:-1] + ((data.address - base) if data is not None else 0)
    if len(start) and not 0 <= start.min() <= (start + np.diff(edges)).max() <= file.stat().st_size:
        raise ValueError("it is compressed, or not mapped")
    return start, np.diff(edges)


def _copy_parquet(file: Path, target: Path, report: ProgressCallback) -> FileIndex:
    """Copy the encoded pictures of a Parquet file, which has them compressed, one after the other into the cache."""
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(file) as table:
        image, label, classes = _find_columns(table.schema_arrow, file)
        labels: list[int] = []
        sizes: list[int] = []
        with explain_disk_errors(target.parent):
            with wait_for_lock(target, report), replace_file(target) as written, open(written, "wb") as out:
                for piece in _read_pieces(table, image, label, labels, sizes, file, report):
                    out.write(piece)
            write_json(target.with_suffix(".json"), {"origin": replace_unprintable(file)})
    size = np.array(sizes, np.int64)
    numbers = np.array(labels, np.int64)
    return FileIndex(classes, _check_labels(numbers, classes, file), np.cumsum(size) - size, size)


def _read_pieces(
    table: Any, image: str, label: str, labels: list[int], sizes: list[int], file: Path, report: ProgressCallback
) -> Iterator[bytes]:
    for batch in table.iter_batches(batch_size=256, columns=[image, label]):
        for value in batch.column(image):
            data = value["bytes"].as_py() if batch.column(image).type.num_fields else value.as_py()
            if not isinstance(data, bytes):
                raise UserError(
                    f"{replace_unprintable(file)} holds the paths of pictures, not pictures: use folder:PATH."
                )
            sizes.append(len(data))
            yield data
        labels += batch.column(label).to_pylist()
        report("Indexing images", len(labels), None)


def _join(tables: list[_Table], without: frozenset[str]) -> LabeledPictures:
    file = np.repeat(np.arange(len(tables)), [len(table.index) for table in tables])
    start, size, labels = (
        np.concatenate([getattr(each.index, name) for each in tables]) for name in ("start", "size", "labels")
    )
    found = LabeledPictures(Pictures.from_parts([table.file for table in tables], file, start, size), labels)
    if not without:
        return found
    import torch

    return found.select(torch.tensor([n for n in range(len(found)) if found.pictures.name(n) not in without]))
