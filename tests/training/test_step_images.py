"""The images of a step: which they are, and that they follow from the seed and the step alone."""

from contextlib import closing

import pytest
import torch

from dign.parallel.team import Team
from dign.runs.config import RunConfig
from dign.runs.folder import load_run
from dign.training.setup import RunLength, create_folder, prepare
from dign.training.step_images import StepImages

CPU = torch.device("cpu")
STEPS = 4
ALL = 10_000  # more than there are: one step is an epoch
PLAIN = {"crop": 0, "flip": False, "jitter": 0.0, "rotation": 0.0, "validation": 0.0}


@pytest.fixture
def open_images(tmp_path):
    """A function from settings to the images of a run that has them."""

    def open_images(team=None, first=0, **changes):
        team = team or Team(device=CPU)
        settings = {"data": "digits", "size": 8, "method": "standard", "epochs": 2, "batch_size": 400, "device": "cpu"}
        config, out = RunConfig.from_mapping({**settings, **changes}), tmp_path / "run"
        data, start = prepare(config, team)
        if not out.exists():
            create_folder(config, out, data, start, Team(device=CPU))
        return closing(StepImages(load_run(out), data, RunLength.of(config, data), team, CPU, first))

    return open_images


def test_an_epoch_has_every_image_once_and_the_next_another_order(open_images):
    with open_images(**PLAIN, epochs=3, batch_size=ALL) as images:
        first, second = (images.get(step)[0].flatten(1) for step in (0, 1))
    assert not torch.equal(first, second)
    for a, b in zip(*(torch.unique(each, dim=0, return_counts=True) for each in (first, second)), strict=True):
        assert torch.equal(a, b)


def test_a_later_start_gives_the_same_images(open_images):
    with open_images(rotation=5.0, crop=1) as images:
        steps = [images.get(step) for step in range(STEPS)]
    with open_images(rotation=5.0, crop=1, first=2) as images:
        for step in (2, 3):
            assert all(torch.equal(a, b) for a, b in zip(images.get(step), steps[step], strict=True))


def test_two_processes_share_the_batch_of_one(open_images):
    with open_images(rotation=5.0) as images:
        together = images.get(1)
    halves = []
    for rank in range(2):
        with open_images(Team(rank=rank, world_size=2, device=CPU), rotation=5.0) as images:
            halves.append(images.get(1))
    for whole, parts in zip(together, zip(*halves, strict=True), strict=True):
        assert torch.equal(whole, torch.stack(parts, 1).flatten(0, 1))  # every second image is one process's


def test_alternating_flips_show_every_image_both_ways(open_images):
    with open_images(**{**PLAIN, "flip": True}, alternate=True, epochs=2, batch_size=ALL) as images:
        first, second = (images.get(step)[0] for step in (0, 1))
    shown = torch.unique(torch.cat([first, second]).flatten(1), dim=0)
    both_ways = torch.unique(torch.cat([first, first.flip(3)]).flatten(1), dim=0)
    assert torch.equal(shown, both_ways)


def test_small_images_come_first(open_images):
    with open_images(size=16, small_first=0.5) as images:
        sizes = [tuple(images.get(step)[0].shape[2:]) for step in range(6)]
    assert sizes == [(12, 12)] * 3 + [(16, 16)] * 3
