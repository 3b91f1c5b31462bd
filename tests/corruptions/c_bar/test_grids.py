"""Places of pixels and numbers for every image broadcast against each other."""

import torch

from dign.corruptions.c_bar.grids import draw_uniform, pixel_places
from dign.corruptions.streams import Streams


def test_places_are_rows_and_columns():
    rows, columns = pixel_places(torch.zeros(2, 3, 4, 5))
    assert (rows + 10 * columns)[0].tolist() == [[row + 10 * column for column in range(5)] for row in range(4)]


def test_every_image_has_its_own_numbers():
    first, second = draw_uniform(Streams(0, "test", torch.arange(3)), 2)
    assert first.shape == second.shape == (3, 1, 1)
    assert len({*first.flatten().tolist(), *second.flatten().tolist()}) == 6
