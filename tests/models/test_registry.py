"""Parameter counts of the published architectures, and what every model promises."""

import sys
import types

import pytest
import torch

from dign.core import catalog as names
from dign.core.errors import UserError
from dign.models import MODELS, build, count_parameters

PUBLISHED = {"resnet18": 11_173_962, "wide_resnet18": 279_019_850, "densenet121": 1_000_618}
SMALL = [name for name in MODELS if name != "wide_resnet18"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameter_counts_at_ten_classes(name):
    with torch.device("meta"):
        body = MODELS[name](10, (32, 32))
    assert count_parameters(body) == PUBLISHED[name]


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("size", [(32, 32), (64, 64), (24, 40)])
def test_every_model_takes_unit_images_to_logits(name, size):
    model = build(name, classes=7, image_size=size).eval()
    assert model(torch.rand(2, 3, *size)).shape == (2, 7)


def test_the_seed_decides_the_weights_and_nothing_else_does():
    torch.manual_seed(1)
    first = build("fastnet", classes=2, image_size=(8, 8), seed=5)
    before = torch.rand(1)
    torch.manual_seed(1)
    torch.rand(100)
    second = build("fastnet", classes=2, image_size=(8, 8), seed=5)
    other = build("fastnet", classes=2, image_size=(8, 8), seed=6)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first.parameters(), other.parameters(), strict=True))
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), before), "building a model must not use the global random state"


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UserError, match="Did you mean 'resnet18'"):
        build("resnet81", classes=2, image_size=(8, 8))


def test_names_for_help_match_the_registry():
    assert set(names.MODELS) == set(MODELS)


def test_building_a_model_leaves_the_random_state_alone():
    before = torch.get_rng_state()
    first, second = (build("tinynet", classes=2, image_size=(8, 8), seed=3)[1].state_dict() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], second[key]) for key in first)


def test_an_unknown_timm_name_suggests_the_nearest_ten_not_all(monkeypatch):
    names = [f"resnet{number}" for number in range(1000)]
    monkeypatch.setitem(sys.modules, "timm", types.SimpleNamespace(list_models=lambda: names))
    with pytest.raises(UserError, match="Unknown timm model 'resnt50': the nearest are resnet50, ") as error:
        build("timm:resnt50", classes=2, image_size=(8, 8))
    assert str(error.value).count("resnet") == 10
    with pytest.raises(UserError, match=r"'@@': `timm.list_models\(\)` in Python lists them"):
        build("timm:@@", classes=2, image_size=(8, 8))


def test_timm_is_to_be_installed_only_where_it_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # both files have one length, and perhaps one time
    monkeypatch.delitem(sys.modules, "timm", raising=False)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    with pytest.raises(
        UserError, match=r"installed but fails \(operator .*\): install the torchvision that fits torch"
    ):
        build("timm:resnet18", classes=2, image_size=(8, 8))
    (tmp_path / "timm.py").write_text("raise ModuleNotFoundError('No module named timm', name='timm')")
    with pytest.raises(UserError, match=r"needs the timm library: pip install 'dign\[timm\]'"):
        build("timm:resnet18", classes=2, image_size=(8, 8))
