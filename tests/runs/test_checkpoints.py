"""Weights and training states as files."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.models import build
from dign.runs.checkpoints import load_state, load_weights, save_state
from dign.runs.config import RunConfig
from dign.training.train import train

SMALL = {"data": "digits", "size": 8, "epochs": 2, "batch_size": 128, "method": "dign", "validate_every": 1}


def config(**changes):
    return RunConfig.from_mapping({**SMALL, **changes})


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "undisturbed"
    train(config(), path, quiet=True)
    return path


@pytest.mark.slow
def test_a_checkpoint_of_another_model_is_named_as_such(undisturbed, tmp_path):
    with pytest.raises(UserError, match="belongs to another model"):
        load_weights(undisturbed / "model.safetensors", build("resnet18", classes=10, image_size=(8, 8)))
    with pytest.raises(UserError, match="shape"):
        load_weights(undisturbed / "model.safetensors", build("tinynet", classes=11, image_size=(8, 8)))
    (tmp_path / "broken.safetensors").write_bytes((undisturbed / "model.safetensors").read_bytes()[:-10])
    with pytest.raises(UserError, match="not a readable safetensors file"):
        load_weights(tmp_path / "broken.safetensors", build("tinynet", classes=10, image_size=(8, 8)))


def test_a_training_state_comes_back_bit_for_bit(tmp_path):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.rand(4, 3)).sum().backward()
    optimizer.step()
    unlogged = {"loss": torch.tensor([0.5, 0.25])}
    save_state(tmp_path / "state.safetensors", model, optimizer, unlogged, step=7, seconds=1.5)
    other = nn.Linear(3, 2)
    restored = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    metadata, found, _ = load_state(tmp_path / "state.safetensors", other, restored)
    assert metadata == {"step": "7", "seconds": "1.5"} and torch.equal(found["loss"], unlogged["loss"])
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert torch.equal(optimizer.state[mine]["momentum_buffer"], restored.state[theirs]["momentum_buffer"])
