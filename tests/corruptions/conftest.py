from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor


def as_images(array: np.ndarray) -> Tensor:
    """(...,H,W,3) as (...,3,H,W)."""
    return torch.from_numpy(np.moveaxis(array, -1, -3).copy())


@pytest.fixture(scope="session")
def reference() -> dict[str, Tensor]:
    """`clean` (12,3,32,32) and per corruption (5,n,3,32,32): see make_reference.py."""
    here = Path(__file__).parent
    stored = {**np.load(here / "reference.npz"), **np.load(here / "c_bar" / "reference.npz")}
    clean = stored.pop("clean")
    outputs = {"clean": as_images(clean)}
    for name, difference in stored.items():
        outputs[name] = as_images(difference + clean[: difference.shape[1]])
    return outputs


@pytest.fixture(scope="session")
def clean(reference: dict[str, Tensor]) -> Tensor:
    return reference["clean"]


@pytest.fixture
def random_images() -> Tensor:
    """(5,3,19,26) uint8: odd, non-square, with all values, and one image that is uniform."""
    images = torch.randint(0, 256, (5, 3, 19, 26), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    images[2] = 255
    return images
