"""Paths of many pictures in one array."""

import pickle
from pathlib import Path

import torch

from dign.data.pictures import Pictures

PATHS = ["/a/b.jpg", "/täxt/c d.png", "/a/\udce9.jpg", "x.jpg"]


def test_paths_come_back_as_they_went_in():
    pictures = Pictures.from_paths(PATHS)
    assert [pictures[number] for number in range(len(pictures))] == list(map(Path, PATHS))


def test_a_selection_shares_the_paths():
    pictures = Pictures.from_paths(PATHS)
    chosen = pictures.select(torch.tensor([3, 0, 0]))
    assert [chosen[number].name for number in range(len(chosen))] == ["x.jpg", "b.jpg", "b.jpg"]
    assert chosen.letters is pictures.letters


def test_no_paths_and_a_copy_for_another_process():
    assert len(Pictures.from_paths([])) == 0
    assert pickle.loads(pickle.dumps(Pictures.from_paths(PATHS)))[1] == Path(PATHS[1])
