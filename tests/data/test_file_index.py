"""Indexes of large files: made once, made again when a file changed, and never needed."""

import numpy as np
import pytest

from dign.data.cache import cache_root
from dign.data.file_index import FOLDER, FileIndex, index_once

INDEX = FileIndex.of(["\udce9\0\n", "dog", "\udce9\0\n"], [512, 2048, 4096], [100, 200, 300])


@pytest.fixture
def shard(tmp_path, monkeypatch):
    monkeypatch.setenv("DIGN_DATA", str(tmp_path / "cache"))
    (tmp_path / "shard.tar").write_bytes(b"12345")
    return tmp_path / "shard.tar"


def fail():
    raise AssertionError("it was indexed again")


def same(one, other):
    arrays = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("labels", "start", "size"))
    return arrays and one.classes == other.classes


def test_a_file_is_indexed_once_whatever_its_classes_are_called(shard):
    assert index_once(shard, lambda: INDEX) is INDEX
    assert same(index_once(shard, fail), INDEX)


def test_a_file_that_changed_is_indexed_again(shard):
    index_once(shard, lambda: INDEX)
    shard.write_bytes(b"123456")
    other = FileIndex.of(["cat"], [0], [6])
    assert index_once(shard, lambda: other) is other


@pytest.mark.parametrize("damage", [b"", b"PK\3\4 not an archive", "half", "labels"])
def test_a_damaged_index_is_made_again(shard, damage):
    index_once(shard, lambda: INDEX)
    (kept,) = (cache_root() / FOLDER).glob("*.npz")
    if damage == "half":
        kept.write_bytes(kept.read_bytes()[:300])
    elif damage == "labels":
        arrays = {"start": INDEX.start, "size": INDEX.size, "labels": INDEX.labels + 7}
        np.savez(kept, classes=np.frombuffer(b'["a", "b"]', np.uint8), **arrays)
    else:
        kept.write_bytes(damage)
    assert index_once(shard, lambda: INDEX) is INDEX
    assert same(index_once(shard, fail), INDEX)


def test_a_cache_that_cannot_be_written_to_is_done_without(shard, monkeypatch):
    (cache_root().parent / "cache").write_text("a file in the place of the folder")
    assert index_once(shard, lambda: INDEX) is INDEX and index_once(shard, lambda: INDEX) is INDEX
