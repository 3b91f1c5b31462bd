"""The cache is listed with what it belongs to, and cleared by name and by age."""

import os
import time

import numpy as np
import pytest
from PIL import Image

import dign.data
from dign.core.errors import UserError
from dign.core.progress import ignore_progress
from dign.data.cache_contents import DAY, list_cache, select_entries
from dign.data.crops import RandomCrop
from dign.data.framing import MIDDLE
from dign.data.pictures import Pictures
from dign.data.shrunk_pictures import shrink_pictures


@pytest.fixture
def root(tmp_path):
    """A cache with a folder's images at two sizes, the larger not used for 40 days, shrunk photographs, and a note."""
    for name in ("cats", "dogs"):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(5):
            pixels = np.random.default_rng(number).integers(0, 255, (150, 200, 3), np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{number}.png")
    root = tmp_path / "cache"
    for size in (8, 16):
        dign.data.load(f"folder:{tmp_path / 'pets'}", size=size, root=root, progress=ignore_progress)
    pictures = Pictures.from_paths(sorted((tmp_path / "pets").glob("*/*.png")))
    shrink_pictures(pictures, RandomCrop(16, 0.25, 4 / 3, MIDDLE), root, ignore_progress)
    (root / "notes.txt").write_text("mine")
    old = time.time() - 40 * DAY
    for file in next(root.glob("folder-pets-*-16px-*")).iterdir():
        os.utime(file, (old, old))
    return root


def test_everything_is_listed_with_its_size_and_what_it_belongs_to(root, tmp_path):
    found = {(entry.what, entry.data): entry for entry in list_cache(root)}
    assert set(found) == {
        ("decoded images", f"folder:{tmp_path / 'pets'}"),
        ("shrunk photographs", f"{tmp_path / 'pets'}"),
    }
    assert len(list_cache(root)) == 3
    assert found["shrunk photographs", f"{tmp_path / 'pets'}"].size > 10 * 3 * 24 * 24
    assert [round(entry.days) for entry in list_cache(root) if "16px" in entry.name] == [40]


def test_opening_it_again_makes_it_used(root, tmp_path):
    dign.data.load(f"folder:{tmp_path / 'pets'}", size=16, root=root, progress=ignore_progress)
    assert all(entry.days < 1 for entry in list_cache(root))


def test_it_is_cleared_by_age_or_by_name_and_nothing_else_is_touched(root, tmp_path):
    entries = list_cache(root)
    (old,) = select_entries(entries, unused_days=30)
    old.remove()
    assert "16px" in old.name and len(list_cache(root)) == 2
    for entry in select_entries(list_cache(root), [f"folder:{tmp_path / 'pets'}"]):
        entry.remove()
    (left,) = list_cache(root)
    left.remove()
    assert left.what == "shrunk photographs"
    assert [path.name for path in root.iterdir() if not path.name.startswith(".")] == ["notes.txt"]
    with pytest.raises(UserError, match="nothing called 'cifar10'"):
        select_entries(entries, ["cifar10"])


def test_a_folder_is_named_as_for_training(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(select_entries(list_cache(root), ["folder:pets"])) == 2


def test_a_cache_that_does_not_exist_is_empty(tmp_path):
    assert list_cache(tmp_path / "nowhere") == []
