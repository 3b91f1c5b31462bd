"""A Python entry as a model."""

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from dign.core.errors import UserError
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign import open_model


@pytest.fixture
def entry(tmp_path, monkeypatch):
    name = f"entry_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(
        "from torch import nn\ndef make(): return nn.Sequential(nn.Flatten(), nn.Linear(12, 2))\n"
    )
    monkeypatch.chdir(tmp_path)
    return name


def test_the_weights_of_a_file_are_loaded_and_images_go_in_as_they_are(entry, tmp_path):
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
    save_file(network.state_dict(), tmp_path / "mine.safetensors")
    torch.save(network.state_dict(), tmp_path / "mine.pth")
    images = torch.rand(2, 3, 2, 2)
    for ending in ("safetensors", "pth"):
        model = open_model(f"{entry}:make", weights=tmp_path / f"mine.{ending}")
        assert torch.equal(model(images), network(images)) and model.name == "mine" and model.normalizes


def test_a_normalization_can_be_given(entry):
    model = open_model(f"{entry}:make", preprocessing=Preprocessing(mean=(0.5,) * 3, std=(0.25,) * 3))
    images = torch.rand(2, 3, 2, 2)
    assert torch.allclose(model(images), model.network((images - 0.5) / 0.25))


def test_an_entry_that_is_none_is_named():
    with pytest.raises(UserError, match="'no-such-thing' is not a Python entry: write MODULE:FUNCTION"):
        open_model("no-such-thing")
