"""Parameter counts of the published architectures, and what every model promises."""

import pytest
import torch
from torch.nn import functional

from dign.core import catalog as names
from dign.core.errors import UserError
from dign.models import MODELS, build, channel_statistics, count_parameters, whiten
from dign.models.fastnet import WHITENING_DAMPING

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


@pytest.mark.parametrize("name", ["resnet18", "densenet121"])
def test_large_images_get_the_7x7_stem(name):
    small, large = (build(name, classes=2, image_size=(side, side))[1].conv for side in (32, 64))
    assert (small.kernel_size, small.stride) == ((3, 3), (1, 1))
    assert (large.kernel_size, large.stride) == ((7, 7), (2, 2))


def test_normalization_is_inside_and_travels_with_the_weights():
    model = build("fastnet", classes=2, image_size=(8, 8), mean=(0.1, 0.2, 0.3), std=(0.5, 0.5, 0.5))
    x = torch.rand(1, 3, 8, 8)
    expected = (x - torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)) / 0.5
    torch.testing.assert_close(model[0](x), expected)
    assert {"0.mean", "0.std"} <= model.state_dict().keys()


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


def test_channel_statistics_of_known_images():
    images = torch.zeros(10, 3, 4, 4, dtype=torch.uint8)
    images[:, 1] = 255
    images[::2, 2] = 255
    mean, std = channel_statistics(images)
    assert mean == pytest.approx([0, 1, 0.5])
    assert std == pytest.approx([1e-3, 1e-3, 0.5])


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UserError, match="Did you mean 'resnet18'"):
        build("resnet81", classes=2, image_size=(8, 8))


def test_names_for_help_match_the_registry():
    assert set(names.MODELS) == set(MODELS)


def test_the_whitening_layer_takes_correlations_out_and_damps_noise():
    generator = torch.Generator().manual_seed(0)
    smooth = torch.randn(64, 3, 6, 6, generator=generator).repeat_interleave(2, 2).repeat_interleave(2, 3)
    images = ((0.5 + 0.1 * smooth).clamp(0, 1) * 255).to(torch.uint8)
    mean, std = channel_statistics(images)
    model = build("fastnet", classes=2, image_size=(12, 12), mean=mean, std=std)
    whiten(model, images)
    normalize, body = model
    patches = functional.conv2d(normalize(images.float() / 255), body.patch.weight[:12]).transpose(0, 1).flatten(1)
    covariance = torch.cov(patches)
    assert (covariance - torch.diag(covariance.diagonal())).abs().max() < 1e-3
    assert covariance.diagonal().max() < 1 and covariance.diagonal().max() > 0.5
    assert torch.equal(body.patch.weight[:12], -body.patch.weight[12:])
    gain = body.patch.weight.flatten(1).norm(dim=1).max()
    assert gain <= WHITENING_DAMPING**-0.5 + 1e-4, "no direction, however flat, is blown up without bound"


def test_only_the_bias_of_a_whitening_layer_trains():
    body = build("fastnet", classes=2, image_size=(8, 8))[1]
    assert not body.patch.weight.requires_grad and body.patch.bias.requires_grad
    tiny = build("tinynet", classes=2, image_size=(8, 8))
    before = tiny[1].patch.weight.clone()
    whiten(tiny, torch.zeros(4, 3, 8, 8, dtype=torch.uint8))
    assert tiny[1].patch.weight.requires_grad and torch.equal(before, tiny[1].patch.weight)


@pytest.mark.parametrize("count", [9, 10, 14, 15, 25, 100])
def test_statistics_are_of_images_from_the_first_to_the_last(count):
    """Images may be sorted by class: here the last fifth of them is white."""
    images = torch.zeros(count, 3, 1, 1, dtype=torch.uint8)
    images[-(count // 5) :] = 255
    mean, _ = channel_statistics(images, most=10)
    assert mean[0] == pytest.approx(count // 5 / count, abs=0.1) and mean[0] > 0


def test_building_a_model_leaves_the_random_state_alone():
    before = torch.get_rng_state()
    first, second = (build("tinynet", classes=2, image_size=(8, 8), seed=3)[1].state_dict() for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[key], second[key]) for key in first)
