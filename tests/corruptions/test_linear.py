"""Linear filters and their borders are those of SciPy."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from dign.corruptions import linear


def numpy_of(images: torch.Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).numpy()


def share_within_one(a: np.ndarray, b: np.ndarray) -> float:
    return float((np.abs(a.astype(int) - b.astype(int)) <= 1).mean())


@pytest.mark.parametrize("border, mode", [("nearest", "nearest"), ("reflect", "reflect"), ("mirror", "mirror")])
def test_borders_are_those_of_scipy(border: str, mode: str) -> None:
    line = np.arange(5.0)
    for offset in range(-13, 14):
        kernel = np.zeros(27)
        kernel[13 + offset] = 1
        expected = ndimage.correlate1d(line, kernel, mode=mode)
        np.testing.assert_array_equal(line[linear.border_index(np.arange(5) + offset, 5, border)], expected)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 6.0])
def test_gaussian_blur_equals_scipy(random_images, sigma: float) -> None:
    made = linear.gaussian_blur(random_images, sigma)
    x = numpy_of(random_images) / 255.0
    expected = ndimage.gaussian_filter(x, (0, sigma, sigma, 0), mode="nearest", truncate=4.0)
    expected = (np.clip(expected, 0, 1) * 255).astype(np.uint8)
    assert share_within_one(numpy_of(made), expected) == 1
    assert (numpy_of(made) == expected).mean() > (0.75 if sigma == 6 else 0.9999)  # one of five images is uniform


def test_exact_gaussian_filter_agrees_with_scipy() -> None:
    x = torch.randint(-500, 500, (3, 20, 9), generator=torch.Generator().manual_seed(1)).double()
    expected = ndimage.gaussian_filter(x.numpy(), (0, 7.5, 7.5), mode="reflect", truncate=3.0)
    made = linear.gaussian_filter(x, 7.5, border="reflect", truncate=3.0)
    np.testing.assert_allclose(made.numpy(), expected, atol=0.05)


@pytest.mark.parametrize("size", [(20, 9), (70, 100), (224, 130)])
def test_bands_multiply_like_the_whole_matrix(size) -> None:
    x = torch.randint(0, 256, (2, *size), generator=torch.Generator().manual_seed(1)).double()
    down, across = (linear.gaussian_bands(3.0, side, x.device) for side in size)

    def whole(bands: linear.Bands, side: int) -> torch.Tensor:
        matrix = torch.zeros((side, side), dtype=torch.float64)
        for start, first, last, values in bands:
            matrix[start : start + len(values), first:last] = values
        return matrix

    expected = whole(down, size[0]) @ x @ whole(across, size[1]).T
    assert torch.equal(linear.apply_bands(x, down, across), expected)  # sums are exact in any order


def test_zooms_one_by_one_and_as_a_matrix_agree() -> None:
    images = torch.randint(0, 256, (2, 3, 40, 52), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    images[1] = 77
    factors = (1.0, 1.06, 1.31)
    singly = linear.zoom_mean(images, factors)
    at_once = linear.apply_operator(linear.zoom_mean_operator(40, 52, factors, images.device), images)
    assert int((singly.int() - at_once.int()).abs().max()) <= 1
    assert float((singly == at_once).float().mean()) > 0.99
    assert (singly[1] == 77).all()
