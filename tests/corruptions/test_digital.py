import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage

from dign.corruptions import corrupt
from dign.corruptions.digital import _affine_positions, _sample
from dign.corruptions.streams import Streams

SIZES = [(32, 32), (8, 8), (9, 17), (33, 50), (16, 40), (31, 29), (13, 8)]


def picture(size: tuple[int, int], channels: int, blocky: bool) -> np.ndarray:
    rng = np.random.default_rng(sum(size))
    if not blocky:
        return rng.integers(0, 256, (*size, channels), dtype=np.uint8)
    coarse = rng.integers(0, 256, (size[0] // 4 + 1, size[1] // 4 + 1, channels), dtype=np.uint8)
    return coarse.repeat(4, axis=0).repeat(4, axis=1)[: size[0], : size[1]]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("severity, fraction", [(1, 0.95), (5, 0.65)])
def test_pixelate_equals_two_box_resizes(size, severity: int, fraction: float) -> None:
    pixels = picture(size, 3, blocky=False)
    height, width = size
    small = Image.fromarray(pixels).resize((int(width * fraction), int(height * fraction)), Image.Resampling.BOX)
    expected = np.asarray(small.resize((width, height), Image.Resampling.BOX))
    made = corrupt(torch.from_numpy(pixels).permute(2, 0, 1), "pixelate", severity, profile="cifar")
    np.testing.assert_array_equal(made.permute(1, 2, 0).numpy(), expected)


@pytest.mark.parametrize("size", [(224, 224), (64, 100), (33, 47), (96, 160)])
@pytest.mark.parametrize("severity, fraction", [(1, 0.6), (2, 0.5), (3, 0.4), (4, 0.3), (5, 0.25)])
def test_pixelate_equals_two_box_resizes_with_wide_windows(size, severity: int, fraction: float) -> None:
    pixels = picture(size, 3, blocky=False)
    height, width = size
    small = Image.fromarray(pixels).resize((int(width * fraction), int(height * fraction)), Image.Resampling.BOX)
    expected = np.asarray(small.resize((width, height), Image.Resampling.BOX))
    made = corrupt(torch.from_numpy(pixels).permute(2, 0, 1), "pixelate", severity, profile="imagenet")
    np.testing.assert_array_equal(made.permute(1, 2, 0).numpy(), expected)


def test_contrast_by_hand() -> None:
    image = torch.zeros((1, 8, 8), dtype=torch.uint8)
    image[:, :4] = 200  # mean 100: 200 -> 100 + 0.75 * 100, 0 -> 100 - 0.75 * 100
    made = corrupt(image, "contrast", 1, profile="cifar")
    assert int(made[0, 0, 0]) in (174, 175) and int(made[0, 7, 0]) in (24, 25)


@pytest.mark.parametrize("border, mode", [("mirror", "mirror"), ("reflect", "reflect")])
def test_sampling_equals_scipy(border: str, mode: str) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.rand((2, 3, 12, 15), generator=generator) * 255
    rows = torch.rand((2, 12, 15), generator=generator) * 30 - 9
    columns = torch.rand((2, 12, 15), generator=generator) * 35 - 10
    made = _sample(x, rows, columns, border)
    for image, result, down, across in zip(x, made, rows, columns, strict=True):
        for channel, got in zip(image, result, strict=True):
            expected = ndimage.map_coordinates(channel.numpy(), [down.numpy(), across.numpy()], order=1, mode=mode)
            np.testing.assert_allclose(got.numpy(), expected, atol=0.02)


def test_the_affine_map_undoes_the_shift_of_three_corners() -> None:
    """Moved corners must be read from where they were, to half a step of 1/32 pixel and its slope."""
    size, shift, half = (32, 40), 2.0, 10
    streams = Streams(1, "elastic", torch.arange(4))
    rows, columns = _affine_positions(size, shift, streams)
    moves = (Streams(1, "elastic", torch.arange(4)).uniform(6).view(-1, 3, 2) * 2 - 1).double() * shift
    for number in range(4):
        for corner, move in zip(((1, 1), (1, -1), (-1, -1)), moves[number], strict=True):
            x, y = 20 + half * corner[0], 16 + half * corner[1]
            at = [[float(y + move[1])], [float(x + move[0])]]
            found_row = ndimage.map_coordinates(rows[number].numpy(), at, order=1)[0]
            found_column = ndimage.map_coordinates(columns[number].numpy(), at, order=1)[0]
            assert abs(found_row - y) < 0.04 and abs(found_column - x) < 0.04


def test_elastic_without_movement_changes_nothing() -> None:
    from dign.corruptions.digital import elastic_transform

    images = torch.from_numpy(picture((16, 24), 3, blocky=False)).permute(2, 0, 1)[None].contiguous()
    still = elastic_transform(images, (0.0, 0.0, 0.0), Streams(0, "still", torch.arange(1)))
    assert int((still.int() - images.int()).abs().max()) <= 1
