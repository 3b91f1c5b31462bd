"""The kernel of defocus_blur, and correlation with it, against SciPy."""

import numpy as np
import pytest
import torch
from scipy import ndimage

from dign.corruptions import corrupt
from dign.corruptions.defocus import correlate_with_disk, disk


def numpy_of(images: torch.Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).numpy()


@pytest.mark.parametrize("radius, softness", [(0.5, 0.6), (3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5), (23, 0.5)])
def test_defocus_blur_is_a_correlation_with_a_disk(random_images, radius: float, softness: float) -> None:
    made = correlate_with_disk(random_images, radius, softness)
    expected = ndimage.correlate(
        numpy_of(random_images).astype(float), disk(radius, softness)[None, :, :, None], mode="mirror"
    )
    expected = expected.clip(0, 255).astype(np.uint8)
    assert np.abs(numpy_of(made).astype(int) - expected).max() <= 1
    assert (numpy_of(made) == expected).mean() > (0.99 if radius > 3 else 0.96)  # 1/29 of the sums are whole


@pytest.mark.parametrize(
    "radius, softness, total", [(3, 0.1, 1), (6, 0.5, 1), (8, 0.5, 1.0130), (10, 0.5, 1.0108), (1.5, 0.1, 1)]
)
def test_a_disk_sums_to_what_the_published_kernel_does(radius: float, softness: float, total: float) -> None:
    """Smoothed with OpenCV's mirrored border, a disk that touches the edge of its kernel sums to more than 1."""
    assert disk(radius, softness).sum() == pytest.approx(total, abs=5e-5)


@pytest.mark.parametrize("severity, gain", [(3, 1), (4, 1.0130), (5, 1.0108)])
def test_defocus_blur_brightens_as_published(severity: int, gain: float) -> None:
    images = torch.tensor([100, 254, 0], dtype=torch.uint8)[:, None, None, None].expand(3, 1, 224, 224)
    made = corrupt(images, "defocus_blur", severity, profile="imagenet")
    assert made[0].unique().tolist() == [int(100 * gain)] and made[1].unique().tolist() == [min(int(254 * gain), 255)]
    assert made[2].unique().tolist() == [0]


def test_a_disk_of_radius_one_without_softness_is_a_plus() -> None:
    kernel = disk(1, 0.01)
    assert kernel.shape == (17, 17) and np.count_nonzero(kernel > 1e-12) == 5
    assert kernel[8, 8] == pytest.approx(0.2)
