"""Folders of transformers and of timm, as these libraries write them."""

import json

import pytest
import torch
from real_torchvision import need

from dign.core.errors import UserError
from dign.models.preprocessing import Preprocessing
from dign.runs.foreign import open_model

LABELS = ["cat", "dog", "bird"]


@pytest.fixture
def transformers():
    return need("transformers", "transformers")


@pytest.fixture
def folder(tmp_path, transformers):
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic")
    config.id2label, config.label2id = dict(enumerate(LABELS)), {name: i for i, name in enumerate(LABELS)}
    model = transformers.ResNetForImageClassification(config).eval()
    model.save_pretrained(tmp_path / "net")
    sizes = {"size": {"shortest_edge": 32}, "crop_pct": 0.875, "resample": 3}
    normalization = {"image_mean": [0.5] * 3, "image_std": [0.25] * 3}
    (tmp_path / "net" / "preprocessor_config.json").write_text(json.dumps({**sizes, **normalization}))
    return tmp_path / "net", model


def test_a_folder_of_transformers_gives_the_logits_of_its_model(folder):
    path, network = folder
    model, images = open_model(path), torch.rand(2, 3, 32, 32)
    with torch.no_grad():
        assert torch.allclose(model(images), network((images - 0.5) / 0.25).logits, atol=1e-5)
    assert model.preprocessing == Preprocessing(32, (0.5,) * 3, (0.25,) * 3, "crop", 0.875, "bicubic")
    assert (model.name, model.classes) == ("net", LABELS)


def test_what_is_given_wins_over_the_folder(folder):
    model = open_model(folder[0], preprocessing=Preprocessing(size=48, mean=(0.0,) * 3))
    assert model.preprocessing.size == 48 and model.preprocessing.mean == (0.0,) * 3
    assert model.preprocessing.std == (0.25,) * 3


def test_a_model_without_a_trained_head_is_refused(tmp_path, transformers):
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic")
    transformers.ResNetModel(config).save_pretrained(tmp_path / "body")
    with pytest.raises(UserError, match=r"has no weights for classifier.*: it was not trained as a classifier"):
        open_model(tmp_path / "body")


def test_code_of_a_folder_is_not_run(folder):
    path, _ = folder
    config = json.loads((path / "config.json").read_text())
    config["auto_map"] = {"AutoModelForImageClassification": "code.Net"}
    (path / "config.json").write_text(json.dumps(config))
    (path / "code.py").write_text("raise SystemExit('was run')")
    with pytest.raises(UserError, match="brings Python code of its own, which is not run"):
        open_model(path)


def test_several_labels_for_an_image_are_refused(folder):
    path, _ = folder
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**config, "problem_type": "multi_label_classification"}))
    with pytest.raises(UserError, match="gives several labels to an image, where exactly one is expected"):
        open_model(path)


@pytest.mark.parametrize("content", [None, "{", "[]", '{"model": "resnet18"}'])
def test_other_folders_are_not_models(tmp_path, content):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(UserError, match="is not a folder with a model: expected an ONNX file"):
        open_model(tmp_path)


def test_damaged_weights_are_one_sentence(folder):
    (folder[0] / "model.safetensors").write_bytes(b"half a file")
    with pytest.raises(UserError, match="net cannot be opened as an image classifier: "):
        open_model(folder[0])


def test_a_folder_of_timm_gives_the_logits_of_its_model(tmp_path):
    timm = need("timm", "timm")
    from timm.models import save_for_hf

    network = timm.create_model("test_resnet", num_classes=3).eval()
    save_for_hf(network, tmp_path / "net", model_config={"label_names": LABELS})
    model, images = open_model(tmp_path / "net"), torch.rand(2, 3, 64, 64)
    mean, std = (torch.tensor(network.pretrained_cfg[key]).view(3, 1, 1) for key in ("mean", "std"))
    with torch.no_grad():
        assert torch.allclose(model(images), network((images - mean) / std), atol=1e-5)
    assert model.classes == LABELS and model.preprocessing.crop_fraction == network.pretrained_cfg["crop_pct"]
    (tmp_path / "net" / "pytorch_model.bin").unlink()
    with pytest.raises(UserError, match=r"has no weights: expected model.safetensors or pytorch_model.bin"):
        open_model(tmp_path / "net")
