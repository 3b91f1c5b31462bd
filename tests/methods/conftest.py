import pytest
import torch
from torch import Tensor, nn

torch.set_num_threads(1)  # images are tiny here: threads would only wait for each other


class Recorder(nn.Module):
    """A small smooth net that remembers every batch it was shown and in which mode."""

    def __init__(self, norm: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        middle = nn.BatchNorm2d(4) if norm else nn.Identity()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3), middle, nn.Tanh(), nn.Flatten(), nn.Linear(4 * 36, 5))
        self.seen: list[Tensor] = []
        self.modes: list[bool] = []

    def forward(self, x: Tensor) -> Tensor:
        self.seen.append(x.detach().clone())
        self.modes.append(self.training)
        return self.body(x)

    @property
    def trained_on(self) -> list[Tensor]:
        return [batch for batch, training in zip(self.seen, self.modes, strict=True) if training]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def normed_recorder() -> Recorder:
    return Recorder(norm=True)


@pytest.fixture
def x() -> Tensor:
    return torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def y() -> Tensor:
    return torch.tensor([0, 1, 2, 3, 4, 0])
