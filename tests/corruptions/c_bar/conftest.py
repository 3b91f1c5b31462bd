import numpy as np
import pytest
import torch
from torch import Tensor

from dign.corruptions.streams import Streams


class Recorder(Streams):
    """Streams of one image that remember what was drawn."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed, "test", torch.arange(1))
        self.uniforms: list[float] = []
        self.normals: list[float] = []

    def uniform(self, count: int) -> Tensor:
        drawn = super().uniform(count)
        self.uniforms += drawn[0].tolist()
        return drawn

    def normal(self, count: int) -> Tensor:
        drawn = super().normal(count)
        self.normals += drawn[0].tolist()
        return drawn


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def picture() -> Tensor:
    """(1,3,14,14) uint8, smooth with some noise."""
    random = torch.Generator().manual_seed(0)
    coarse = torch.nn.functional.interpolate(torch.rand(1, 3, 4, 4, generator=random), size=14, mode="bilinear")
    return (coarse * 200 + torch.rand(1, 3, 14, 14, generator=random) * 55).to(torch.uint8)


@pytest.fixture
def array(picture) -> np.ndarray:
    """The picture as (14,14,3) float64."""
    return picture[0].permute(1, 2, 0).double().numpy()


@pytest.fixture
def check():
    """Compare a result (1,3,H,W) with values (H,W,3) that are to be truncated; a rounding error may decide a few."""

    def compare(made: Tensor, expected: np.ndarray) -> None:
        values = np.clip(expected, 0, 255).astype(np.uint8).astype(int)
        off = np.abs(made[0].permute(1, 2, 0).numpy().astype(int) - values)
        assert off.max() <= 1 and (off == 0).mean() > 0.99

    return compare
