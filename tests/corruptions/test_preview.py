"""A preview sheet shows the clean picture and every severity of every corruption that was chosen."""

import numpy as np
import torch

from dign.corruptions import corrupt
from dign.corruptions.preview import _CELL, _left, _resize, preview_sheet, shrink

PICTURE = torch.randint(0, 256, (3, 8, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_the_cells_hold_the_clean_and_the_corrupted_pictures():
    sheet = np.asarray(preview_sheet(PICTURE, ["fog"], [2, 5], seed=3))
    scale = _CELL / 16
    cells = [np.asarray(_resize(corrupt(PICTURE, "fog", severity, seed=3), scale)) for severity in (0, 2, 5)]
    for column, cell in enumerate(cells):
        strip = sheet[:, _left(column) : _left(column) + _CELL]
        assert any(np.array_equal(strip[top : top + len(cell)], cell) for top in range(len(strip) - len(cell) + 1))


def test_a_row_and_a_heading_are_added_for_another_family():
    one, two, three = (
        preview_sheet(PICTURE, names, [1]).height for names in (["fog"], ["fog", "snow"], ["fog", "snow", "contrast"])
    )
    assert three - two > two - one > 0


def test_large_pictures_shrink_and_keep_their_shape():
    shrunk = shrink(np.zeros((3, 1000, 2000), np.uint8))
    assert shrunk.shape[2] == 2 * shrunk.shape[1] and shrunk.shape[2] < 2000
    assert shrink(np.zeros((3, 8, 16), np.uint8)).shape == (3, 8, 16)
