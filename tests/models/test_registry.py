"""Parameter counts of the published architectures, and what every model promises."""

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
