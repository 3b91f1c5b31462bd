"""Colors change as in HSV."""

import numpy as np
import pytest
import torch
from matplotlib.colors import hsv_to_rgb, rgb_to_hsv

from dign.corruptions import corrupt


def picture(size: tuple[int, int], channels: int, blocky: bool) -> np.ndarray:
    rng = np.random.default_rng(sum(size))
    if not blocky:
        return rng.integers(0, 256, (*size, channels), dtype=np.uint8)
    coarse = rng.integers(0, 256, (size[0] // 4 + 1, size[1] // 4 + 1, channels), dtype=np.uint8)
    return coarse.repeat(4, axis=0).repeat(4, axis=1)[: size[0], : size[1]]


@pytest.mark.parametrize(
    "name, severity, factors, shifts",
    [
        ("brightness", 3, (1, 1, 1), (0, 0, 0.15)),
        ("saturate", 2, (1, 0.1, 1), (0, 0, 0)),
        ("saturate", 5, (1, 2.5, 1), (0, 0.2, 0)),
    ],
)
def test_colors_change_in_hsv(name: str, severity: int, factors, shifts) -> None:
    pixels = picture((40, 40), 3, blocky=True)
    pixels[:8, :8] = 90  # gray
    hsv = rgb_to_hsv(pixels / 255.0) * np.array(factors) + np.array(shifts)
    expected = hsv_to_rgb(np.clip(hsv, 0, 1)) * 255
    made = corrupt(torch.from_numpy(pixels).permute(2, 0, 1), name, severity, profile="cifar")
    assert np.abs(made.permute(1, 2, 0).numpy() + 0.5 - expected).max() < 0.501
