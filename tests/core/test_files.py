"""Files are replaced as a whole, and untrusted ones are read within limits."""

import json
import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dign.core.errors import UserError
from dign.core.files import (
    MAX_DEPTH,
    format_json,
    is_encodable,
    map_array,
    parse_json,
    read_json,
    read_limited,
    replace_file,
    write_json,
    write_text,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "file", "old")
    with pytest.raises(RuntimeError), replace_file(tmp_path / "file") as partial:
        partial.write_text("new, half")
        raise RuntimeError
    assert (tmp_path / "file").read_text() == "old" and names(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_overwritten_and_a_link_is_not_followed(tmp_path):
    (tmp_path / "precious").write_text("kept")
    (tmp_path / ".file.partial").symlink_to(tmp_path / "precious")
    write_text(tmp_path / "file", "new")
    assert (tmp_path / "precious").read_text() == "kept" and names(tmp_path) == ["file", "precious"]


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of Unix")
def test_a_file_gets_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    with replace_file(tmp_path / "file") as partial:
        partial.write_text("")
        partial.chmod(0o600)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(UserError, match="is not a regular file"), replace_file(tmp_path):
        pass


def test_json_is_read_back_and_nan_is_neither_written_nor_read(tmp_path):
    write_json(tmp_path / "file", {"a": [1, None, "ü"]})
    assert read_json(tmp_path / "file") == {"a": [1, None, "ü"]}
    with pytest.raises(ValueError):
        write_json(tmp_path / "file", float("nan"))
    with pytest.raises(ValueError, match="NaN is not JSON"):
        parse_json("[NaN]")


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
NESTED = st.recursive(
    PLAIN,
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers() | st.booleans(), inner)
    ),
)


@pytest.mark.slow
@given(NESTED)
def test_formatted_json_is_the_value_that_the_standard_library_writes(value):
    assert json.loads(format_json(value)) == json.loads(json.dumps(value))


def test_a_list_of_numbers_is_one_line_and_a_table_of_lists_one_line_for_each():
    assert format_json({"bins": {"counts": [0, 3], "correct": [0, 2]}, "ece": 1.5}) == (
        '{\n "bins": {\n  "counts": [0, 3],\n  "correct": [0, 2]\n },\n "ece": 1.5\n}'
    )


@pytest.mark.parametrize("depth", [MAX_DEPTH, 100_000])
def test_deeply_nested_json_is_refused(depth):
    assert parse_json("[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * (depth + 1) + "]" * (depth + 1))


def test_large_files_and_pipes_are_not_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    assert read_limited(tmp_path / "file", 5) == b"12345"
    with pytest.raises(ValueError, match="larger than"):
        read_limited(tmp_path / "file", 4)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a file"):
        read_limited(tmp_path / "pipe", 5)


def test_arrays_are_mapped_and_pickles_archives_and_text_are_refused(tmp_path):
    array = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "good.npy", array)
    assert np.array_equal(map_array(tmp_path / "good.npy"), array)
    np.save(tmp_path / "pickle.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "archive.npz", array)
    (tmp_path / "text.npy").write_text(json.dumps([1]))
    for name in ("pickle.npy", "archive.npz", "text.npy"):
        with pytest.raises(ValueError, match="npy file"):
            map_array(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        map_array(tmp_path / "missing.npy")


def test_half_a_character_cannot_be_encoded():
    assert is_encodable("ü") and not is_encodable("\ud800")
