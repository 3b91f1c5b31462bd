"""Paths of many pictures in one array."""

import pickle
from pathlib import Path

import pytest
import torch

from dign.core.errors import UserError
from dign.data.pictures import Pictures

PATHS = ["/a/b.jpg", "/täxt/c d.png", "/a/\udce9.jpg", "x.jpg"]


def test_paths_come_back_as_they_went_in():
    pictures = Pictures.from_paths(PATHS)
    assert [pictures.path(number) for number in range(len(pictures))] == list(map(Path, PATHS))


def test_a_selection_shares_the_paths():
    pictures = Pictures.from_paths(PATHS)
    chosen = pictures.select(torch.tensor([3, 0, 0]))
    assert [chosen.path(number).name for number in range(len(chosen))] == ["x.jpg", "b.jpg", "b.jpg"]
    assert chosen.letters is pictures.letters


def test_no_paths_and_a_copy_for_another_process():
    assert len(Pictures.from_paths([])) == 0
    assert pickle.loads(pickle.dumps(Pictures.from_paths(PATHS))).path(1) == Path(PATHS[1])


def test_parts_of_a_file_are_read_and_named_by_their_place(tmp_path):
    (tmp_path / "a.tar").write_bytes(b"..first.")
    (tmp_path / "b.tar").write_bytes(b"second")
    pictures = Pictures.from_parts([tmp_path / "a.tar", tmp_path / "b.tar"], [0, 1, 1], [2, 0, 4], [5, 6, 9])
    assert (pictures.read(0), pictures.read(1)) == (b"first", b"second")
    assert pictures.select(torch.tensor([1])).read(0) == b"second"
    assert pictures.name(0) == f"{tmp_path / 'a.tar'} (at byte 2)"
    with pytest.raises(UserError, match="shorter than it was"):
        pictures.read(2)
    (tmp_path / "a.tar").unlink()
    with pytest.raises(UserError, match="No such file"):
        pictures.read(0)


def test_a_whole_file_is_its_path():
    pictures = Pictures.from_paths(PATHS)
    assert pictures.read(3) == Path("x.jpg") and pictures.name(3) == "x.jpg"
