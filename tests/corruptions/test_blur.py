import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from dign.corruptions import corrupt
from dign.corruptions.blur import _sources, blur_along_lines
from dign.corruptions.streams import Streams


def numpy_of(images: torch.Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).numpy()


def share_within_one(a: np.ndarray, b: np.ndarray) -> float:
    return float((np.abs(a.astype(int) - b.astype(int)) <= 1).mean())


@pytest.mark.parametrize("size", [(32, 32), (24, 41)])
def test_zoom_blur_is_a_mean_of_zooms(size: tuple[int, int]) -> None:
    images = torch.randint(0, 256, (2, 3, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    made = corrupt(images, "zoom_blur", 5, profile="cifar")
    x = numpy_of(images) / 255.0
    total = x.copy()
    factors = np.arange(1, 1.26, 0.01)
    for factor in factors:
        total += zoomed(x, factor)
    assert share_within_one(numpy_of(made), (total / (len(factors) + 1) * 255).astype(np.uint8)) == 1


def zoomed(x: np.ndarray, factor: float) -> np.ndarray:
    height, width = x.shape[1:3]
    tall, wide = math.ceil(height / factor), math.ceil(width / factor)
    top, left = (height - tall) // 2, (width - wide) // 2
    big = ndimage.zoom(x[:, top : top + tall, left : left + wide], (1, factor, factor, 1), order=1)
    top, left = (big.shape[1] - height) // 2, (big.shape[2] - width) // 2
    return big[:, top : top + height, left : left + width]


def test_motion_blur_takes_its_samples_one_by_one(random_images) -> None:
    radius, sigma, degrees = 3, 2.0, torch.tensor([-45.0, -10.0, 0.0, 33.0, -120.0])
    made = blur_along_lines(random_images, radius, sigma, degrees)
    weights = np.exp(-(np.arange(7) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    height, width = random_images.shape[-2:]
    for image, result, angle in zip(random_images.numpy(), made.numpy(), degrees.tolist(), strict=True):
        total = np.zeros(image.shape)
        for step, weight in enumerate(weights):
            across = math.ceil(step * math.cos(math.radians(angle)) - 0.5)
            down = math.ceil(step * math.sin(math.radians(angle)) - 0.5)
            rows, columns = (
                np.clip(np.arange(height) + down, 0, height - 1),
                np.clip(np.arange(width) + across, 0, width - 1),
            )
            total += weight * image[:, rows][:, :, columns]
        assert share_within_one(result, total.astype(np.uint8)) == 1


@pytest.mark.parametrize("reach", [1, 2, 4])
@pytest.mark.parametrize("size", [(16, 16), (11, 20), (8, 8)])
def test_glass_blur_ends_where_the_sequential_scan_ends(reach: int, size: tuple[int, int]) -> None:
    """The published loop, pixel after pixel, with the same offsets."""
    height, width = size
    images = torch.arange(3)
    found = _sources(size, reach, Streams(5, "glass", images))
    rows, columns = range(reach + 1, height - reach + 1), range(reach + 1, width - reach + 1)
    bits = Streams(5, "glass", images).bits(len(rows) * len(columns)) if rows and columns else torch.zeros(3, 0)
    for source, words in zip(found, bits.tolist(), strict=True):
        offsets = dict(zip([(row, column) for row in rows for column in columns], words, strict=True))
        grid = np.arange(height * width).reshape(height, width)
        for row in range(height - reach, reach, -1):
            for column in range(width - reach, reach, -1):
                word = offsets[row, column]
                down, across = (
                    ((word & 0xFFFF) * 2 * reach >> 16) - reach,
                    ((word >> 16 & 0xFFFF) * 2 * reach >> 16) - reach,
                )
                grid[row, column] = grid[row + down, column + across]
        np.testing.assert_array_equal(source.view(size).numpy(), grid)
