"""Architectures by name, with weights of a file."""

import pytest
import torch
from real_torchvision import need
from safetensors.torch import save_file

from dign.core.errors import UserError
from dign.models import build
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign import open_model


@pytest.mark.parametrize("name", ["torchvision:mobilenet_v3_small", "timm:test_resnet"])
def test_weights_of_a_library_get_its_normalization_and_their_own_classes(tmp_path, name):
    library, _, short = name.partition(":")
    module = need("torchvision.models" if library == "torchvision" else "timm", library)
    network = getattr(module, "get_model" if library == "torchvision" else "create_model")(short, num_classes=7).eval()
    torch.save(
        {"state_dict": {f"module.{key}": value for key, value in network.state_dict().items()}}, tmp_path / "w.pth"
    )
    model, images = open_model(name, weights=tmp_path / "w.pth"), torch.rand(2, 3, 64, 64)
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in (model.preprocessing.mean, model.preprocessing.std))
    with torch.no_grad():
        assert torch.allclose(model(images), network((images - mean) / std), atol=1e-5)
    assert model(images).shape == (2, 7) and model.name == "w"


def test_weights_that_dign_trained_bring_their_normalization(tmp_path):
    network = build("tinynet", classes=4, image_size=(16, 16), mean=[0.1] * 3, std=[0.2] * 3, seed=1).eval()
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    model = open_model("tinynet", weights=tmp_path / "w.safetensors", preprocessing=Preprocessing(size=16))
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(model(images), network(images)) and model.normalizes


def test_a_standardizing_model_is_opened_with_its_normalization_or_not_at_all(tmp_path):
    network = build("fastnet_standardized", classes=4, image_size=(16, 16), mean=[0.1] * 3, std=[0.2] * 3).eval()
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    size = Preprocessing(size=16)
    model = open_model("fastnet_standardized", weights=tmp_path / "w.safetensors", preprocessing=size)
    images = torch.rand(2, 3, 16, 16)
    assert torch.equal(model(images), network(images))
    save_file(network[1].state_dict(), tmp_path / "bare.safetensors")
    with pytest.raises(UserError, match="has no normalization, which fastnet_standardized standardizes images by"):
        open_model("fastnet_standardized", weights=tmp_path / "bare.safetensors", preprocessing=size)


def test_weights_of_another_architecture_are_listed(tmp_path):
    torch.save(build("resnet18", classes=4, image_size=(32, 32))[1].state_dict(), tmp_path / "w.pth")
    with pytest.raises(UserError, match=r"w.pth does not fit the model: it lacks .*; it has .*; choose the `model`"):
        open_model("densenet121", weights=tmp_path / "w.pth")


def test_an_architecture_needs_weights():
    with pytest.raises(UserError, match="tinynet is an architecture without weights: name the file"):
        open_model("tinynet")
