"""How many images fit into memory at once."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.landscape import batch_size
from dign.landscape.measure import Plan, measure


def test_batch_size_follows_the_memory_that_is_free(model, monkeypatch) -> None:
    image = torch.zeros(1, 3, 2, 2)
    sizes = []
    for free in (20_000, 40_000, 2**40):
        monkeypatch.setattr(batch_size, "get_free_memory", lambda device, free=free: free)
        sizes.append(batch_size.find_batch_size(model, image))
    assert 1 <= sizes[0] < sizes[1] < sizes[2] == 128
    monkeypatch.setattr(batch_size, "get_free_memory", lambda device: 100)
    with pytest.raises(UserError, match="too little memory"):
        batch_size.find_batch_size(model, image)


def test_activation_bytes_count_what_is_kept_and_not_the_weights() -> None:
    """One linear layer after tanh: backward keeps tanh's output (12 floats), not the (1000,12) weight."""
    model = nn.Sequential(nn.Flatten(), nn.Tanh(), nn.Linear(12, 1000))
    kept = batch_size.measure_activations(model, torch.zeros(1, 3, 2, 2))
    assert 12 * 4 <= kept <= (12 + 2 * 1000 + 64) * 4


def test_running_out_of_memory_halves_the_batch(model, images, labels) -> None:
    plan = Plan(radii=(1.0,), draws=1)
    expected = measure(model, images, labels, plan)

    class Tight(nn.Module):
        def __init__(self, limit: int) -> None:
            super().__init__()
            self.inner, self.limit = model, limit

        def forward(self, x):
            if len(x) > self.limit:
                raise torch.OutOfMemoryError("too much")
            return self.inner(x)

    found = measure(Tight(10), images, labels, plan, batch_size=64)
    torch.testing.assert_close(found.curvature, expected.curvature, rtol=1e-4, atol=1e-6)
    with pytest.raises(UserError, match="too little memory"):
        measure(Tight(0), images, labels, plan, batch_size=64)


def test_a_containers_memory_that_holds_read_files_is_free(tmp_path, monkeypatch) -> None:
    for name, text in (("max", "8000"), ("current", "7900"), ("stat", "anon 100\ninactive_file 7000\nslab 3\n")):
        (tmp_path / f"memory.{name}").write_text(text)
    monkeypatch.setattr(batch_size, "CONTAINER", tmp_path)
    assert batch_size._container_available() == 7100
    (tmp_path / "memory.max").write_text("max")
    assert batch_size._container_available() is None


COUNT = 70  # more than two blocks of noise


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 4))


@pytest.fixture
def images() -> torch.Tensor:
    return torch.randint(0, 256, (COUNT, 3, 2, 2), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


@pytest.fixture
def labels() -> torch.Tensor:
    return torch.randint(0, 4, (COUNT,), generator=torch.Generator().manual_seed(2))
