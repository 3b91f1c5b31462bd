"""A manifest is read only if all of it is valid, and checksums find altered parts."""

import hashlib

import pytest

from dign.core.errors import UserError
from dign.corruptions.benchmark.manifest import (
    FOLDERS,
    NPY,
    check_parts,
    hash_file,
    part_name,
    read_manifest,
    write_manifest,
)

MANIFEST = {
    "schema": 1, "layout": "npy", "severities": [1, 3], "names": ["fog"], "classes": ["cat", "dog"],
    "profile": "cifar", "seed": 0, "frost": "procedural", "parts": {"fog.npy": {"sha256": "0"}},
}  # fmt: skip


def test_a_manifest_is_read_back_and_none_is_none(tmp_path):
    assert read_manifest(tmp_path) is None
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST


@pytest.mark.parametrize(
    "changes",
    [
        {"schema": 2},
        {"layout": "zip"},
        {"severities": []},
        {"severities": [6]},
        {"severities": [True]},
        {"parts": {"../../outside.npy": {"sha256": "0"}}},
        {"parts": {"fog.npy": "0"}},
        {"classes": None},
        {"seed": "0"},
        {"frost": 1},
    ],
)
def test_an_invalid_entry_is_refused(tmp_path, changes):
    write_manifest(tmp_path, {**MANIFEST, **changes})
    with pytest.raises(UserError, match="not a manifest that this version can read"):
        read_manifest(tmp_path)


def test_the_checksum_of_a_folder_covers_names_and_contents(tmp_path):
    folder = tmp_path / "fog" / "1"
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(b"x")
    assert hash_file(folder / "a") == hashlib.sha256(b"x").hexdigest()
    before = hash_file(folder)
    assert before == hashlib.sha256(b"a\0x").hexdigest()
    (folder / "a").rename(folder / "b")
    assert hash_file(folder) != before


def test_missing_and_altered_parts_are_named(tmp_path):
    (tmp_path / "fog.npy").write_bytes(b"x")
    good = {"parts": {"fog.npy": {"sha256": hashlib.sha256(b"x").hexdigest()}}}
    check_parts(tmp_path, good)
    (tmp_path / "fog.npy").write_bytes(b"y")
    with pytest.raises(UserError, match=r"fog\.npy does not match its checksum"):
        check_parts(tmp_path, good)
    (tmp_path / "fog.npy").unlink()
    with pytest.raises(UserError, match=r"fog\.npy is missing"):
        check_parts(tmp_path, good)


def test_names_of_parts():
    assert part_name(NPY, "fog", 3) == "fog.npy" and part_name(FOLDERS, "fog", 3) == "fog/3"
