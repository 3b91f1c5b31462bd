"""Batches of crops: the same from any number of workers, and an unreadable picture is named."""

import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from dign.core.errors import UserError
from dign.data.crop_batches import MOST_WORKERS, CropBatches, count_workers
from dign.data.crops import RandomCrop
from dign.data.pictures import Pictures

PLAN = [(0, torch.tensor([0, 2])), (0, torch.tensor([1, 3])), (1, torch.tensor([0, 2]))]


@pytest.fixture
def pictures(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (4, 40, 60, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        Image.fromarray(each).save(tmp_path / f"{number}.png")
    return Pictures.from_paths(tmp_path / f"{number}.png" for number in range(4))


def read_all(pictures, workers, plan=PLAN):
    batches = CropBatches(pictures, RandomCrop(16), iter(plan), seed=5, workers=workers)
    return [next(batches) for _ in plan]


def test_batches_do_not_depend_on_the_workers(pictures):
    alone, two = read_all(pictures, 0), read_all(pictures, 2)
    assert all(torch.equal(a, b) for a, b in zip(alone, two, strict=True))
    assert alone[0].shape == (2, 3, 16, 16) and alone[0].dtype == torch.uint8
    assert not torch.equal(alone[0], alone[2]), "another epoch, other crops"


def test_a_plan_may_start_anywhere(pictures):
    assert torch.equal(read_all(pictures, 0)[2], read_all(pictures, 0, PLAN[2:])[0])


def test_a_batch_holds_the_crops_of_its_pictures(pictures):
    crop = RandomCrop(16)
    assert np.array_equal(read_all(pictures, 0)[1][1].numpy(), crop.read(pictures.path(3), 5, 0, 3))


def test_reading_leaves_the_global_generator_alone(pictures):
    state = torch.get_rng_state()
    read_all(pictures, 1)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_picture_that_went_away_is_named(pictures, workers):
    pictures.path(2).unlink()
    with pytest.raises(UserError, match=r"The image .*2\.png cannot be read \(it does not exist\)"):
        read_all(pictures, workers)


def test_waiting_is_measured(pictures):
    batches = CropBatches(pictures, RandomCrop(16), iter(PLAN), seed=5, workers=0)
    next(batches)
    assert 0 < batches.waited < 5


def test_workers_follow_the_cores():
    assert count_workers(0) == 0 and count_workers(5) == 5
    assert 1 <= count_workers(-1, processes=64) <= count_workers(-1) <= MOST_WORKERS


SCRIPT = """
import sys, torch
from dign.data.crop_batches import CropBatches
from dign.data.crops import RandomCrop
from dign.data.pictures import Pictures
plan = ((0, torch.tensor([0, 1])) for _ in range(1000))
batches = CropBatches(Pictures.from_paths(sys.argv[1:]), RandomCrop(16), plan, seed=0, workers=2)
print(next(batches).shape)
"""


@pytest.mark.slow
def test_a_program_that_forgets_its_workers_ends(pictures):
    command = [sys.executable, "-c", SCRIPT, *(str(pictures.path(number)) for number in range(4))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and ended.stdout == "torch.Size([2, 3, 16, 16])\n", ended.stderr


def test_closing_ends_the_workers(pictures):
    batches = CropBatches(pictures, RandomCrop(16), iter(PLAN), seed=5, workers=2)
    next(batches)
    assert len(multiprocessing.active_children()) == 2
    batches.close()
    assert multiprocessing.active_children() == []
    with pytest.raises(StopIteration):
        next(batches)
