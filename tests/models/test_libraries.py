"""Models of the real timm and torchvision: names, what their weights expect, and trained weights without a network."""

import pytest
import torch
from real_torchvision import need

from dign.core.errors import UserError
from dign.models import build, fetch_pretrained, find_preprocessing
from dign.models.libraries import build_from_library, import_library


@pytest.fixture
def torchvision_cache(tmp_path, monkeypatch):
    """A cache of torchvision's weights: it is asked before the network is."""
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    return tmp_path / "hub" / "checkpoints"


@pytest.mark.parametrize("name", ["timm:resnet10t", "torchvision:mobilenet_v3_small", "torchvision:googlenet"])
def test_a_network_of_a_library_takes_unit_images_to_logits(name):
    need(f"{name.partition(':')[0]}", name.partition(":")[0])
    model = build(name, classes=7, image_size=(64, 64)).eval()
    assert model(torch.rand(2, 3, 64, 64)).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "size"), [("timm:test_vit", 96), ("timm:test_vit2", 160), ("torchvision:vit_b_32", 64)]
)
def test_a_vision_transformer_is_built_for_the_size_of_the_images(name, size):
    need(f"{name.partition(':')[0]}", name.partition(":")[0])
    with torch.device("meta"):
        network = build_from_library(name, 7, (size, size)).eval()
        assert network(torch.empty(2, 3, size, size)).shape == (2, 7)


def test_a_size_that_patches_do_not_divide_is_one_sentence():
    need("torchvision", "torchvision")
    with pytest.raises(UserError, match=r"vit_b_32 cannot be built for images of 40x40 pixels \(.*that its patches"):
        build_from_library("torchvision:vit_b_32", 2, (40, 40))


def test_names_are_checked_and_the_nearest_are_suggested():
    need("timm", "timm")
    with pytest.raises(UserError, match=r"Unknown torchvision model 'resnet81': the nearest are .*resnet18"):
        build_from_library("torchvision:resnet81", 2, (32, 32))
    with pytest.raises(UserError, match="Unknown torchvision model 'resnet81': the nearest"):
        find_preprocessing("torchvision:resnet81")
    with pytest.raises(UserError, match="Unknown torchvision model 'fasterrcnn"):  # a detector, which is no classifier
        build_from_library("torchvision:fasterrcnn_resnet50_fpn", 2, (32, 32))
    with pytest.raises(UserError, match="Unknown timm model 'resnt50': the nearest are"):
        build_from_library("timm:resnt50", 2, (32, 32))


def test_what_weights_expect_comes_from_the_library():
    need("timm", "timm")
    imagenet = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    of_timm = find_preprocessing("timm:resnet10t")
    assert (of_timm.size, of_timm.crop_fraction, of_timm.interpolation) == (176, 0.875, "bicubic")
    of_torchvision = find_preprocessing("torchvision:resnet18")
    assert (of_torchvision.size, of_torchvision.crop_fraction, of_torchvision.interpolation) == (224, 0.875, "bilinear")
    assert (of_timm.mean, of_timm.std) == (of_torchvision.mean, of_torchvision.std) == imagenet
    assert find_preprocessing("resnet18").describe() == ""


def test_trained_weights_of_torchvision_come_from_its_cache(torchvision_cache):
    models = need("torchvision.models", "torchvision")
    trained = models.get_model("mobilenet_v3_small").state_dict()
    torch.save(trained, torchvision_cache / "mobilenet_v3_small-047dcff4.pth")
    found = fetch_pretrained("torchvision:mobilenet_v3_small")
    assert found.keys() == trained.keys() and all(torch.equal(found[name], trained[name]) for name in trained)


def test_trained_weights_of_timm_come_from_its_cache(tmp_path, monkeypatch):
    """The cache of the Hugging Face hub, as a download would have left it."""
    timm = need("timm", "timm")
    from huggingface_hub import constants
    from safetensors.torch import save_file

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    trained = timm.create_model("test_resnet").state_dict()
    repository = tmp_path / f"models--{timm.get_pretrained_cfg('test_resnet').hf_hub_id.replace('/', '--')}"
    snapshot = repository / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    save_file(trained, snapshot / "model.safetensors")
    found = fetch_pretrained("timm:test_resnet")
    assert all(torch.equal(found[name], trained[name]) for name in trained)


def test_weights_that_cannot_be_fetched_are_one_sentence(torchvision_cache):
    need("torchvision", "torchvision")
    (torchvision_cache / "mobilenet_v3_small-047dcff4.pth").write_bytes(b"half a download")
    with pytest.raises(
        UserError, match=r"of torchvision:mobilenet_v3_small could not be fetched \(.*name a file"
    ) as error:
        fetch_pretrained("torchvision:mobilenet_v3_small")
    assert "\n" not in str(error.value)
    with pytest.raises(UserError, match="`init=pretrained` is for models of timm and torchvision, not for resnet18"):
        fetch_pretrained("resnet18")


def test_a_library_is_to_be_installed_only_where_it_is_missing(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_library.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    with pytest.raises(UserError, match=r"is installed but fails \(operator .*\): install the torchvision that fits"):
        import_library("broken_library", "x:y")
    with pytest.raises(UserError, match=r"x:y needs the no_library library: pip install 'dign\[no_library\]'"):
        import_library("no_library.models", "x:y")
