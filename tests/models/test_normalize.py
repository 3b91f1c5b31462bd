"""Normalization is a layer, and its statistics are those of the images."""

import pytest
import torch
from torch import nn

from dign.models import build, channel_statistics
from dign.models.normalize import Normalize, Normalized, Standardize

MEAN, STD = [0.1, 0.2, 0.3], [0.5, 0.25, 0.2]


def test_a_normalized_model_sees_what_its_own_pipeline_would_show_it():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(48, 5))
    x = torch.rand(2, 3, 4, 4)
    shown = torch.stack([(x[:, i] - MEAN[i]) / STD[i] for i in range(3)], dim=1)
    torch.testing.assert_close(Normalized(model, MEAN, STD)(x), model(shown))


def test_its_statistics_travel_with_the_weights_and_nothing_is_written_to_the_images():
    first, second = Normalized(nn.Flatten(), MEAN, STD), Normalized(nn.Flatten(), [0] * 3, [1] * 3)
    second.load_state_dict(first.state_dict())
    x = torch.rand(2, 3, 4, 4)
    before = x.clone()
    assert torch.equal(first(x), second(x)) and torch.equal(x, before)


def test_whatever_the_model_returns_is_returned():
    class Tagged(nn.Module):
        def forward(self, x):
            return {"logits": x, "tag": 7}

    x = torch.rand(1, 3, 2, 2)
    output = Normalized(Tagged(), MEAN, STD)(x)
    assert output["tag"] == 7 and torch.equal(output["logits"], Normalize(MEAN, STD)(x))


def test_normalization_is_inside_and_travels_with_the_weights():
    model = build("fastnet", classes=2, image_size=(8, 8), mean=(0.1, 0.2, 0.3), std=(0.5, 0.5, 0.5))
    x = torch.rand(1, 3, 8, 8)
    expected = (x - torch.tensor([0.1, 0.2, 0.3]).view(3, 1, 1)) / 0.5
    torch.testing.assert_close(model[0](x), expected)
    assert {"0.mean", "0.std"} <= model.state_dict().keys()


def test_channel_statistics_of_known_images():
    images = torch.zeros(10, 3, 4, 4, dtype=torch.uint8)
    images[:, 1] = 255
    images[::2, 2] = 255
    mean, std = channel_statistics(images)
    assert mean == pytest.approx([0, 1, 0.5])
    assert std == pytest.approx([1e-3, 1e-3, 0.5])


@pytest.mark.parametrize("count", [9, 10, 14, 15, 25, 100])
def test_statistics_are_of_images_from_the_first_to_the_last(count):
    """Images may be sorted by class: here the last fifth of them is white."""
    images = torch.zeros(count, 3, 1, 1, dtype=torch.uint8)
    images[-(count // 5) :] = 255
    mean, _ = channel_statistics(images, most=10)
    assert mean[0] == pytest.approx(count // 5 / count, abs=0.1) and mean[0] > 0


def test_standardized_images_have_the_training_images_mean_and_deviation_and_keep_their_colors():
    generator = torch.Generator().manual_seed(0)
    mean, std = [0.2, 0.4, 0.6], [0.1, 0.2, 0.3]
    images = torch.tensor(mean).view(3, 1, 1) + torch.tensor(std).view(3, 1, 1) * torch.randn(
        1, 3, 64, 64, generator=generator
    )
    # An image that is as the training images are in the mean stays as it is.
    torch.testing.assert_close(Standardize(mean, std)(images), Normalize(mean, std)(images), atol=0.05, rtol=0)
    pixels = torch.rand(2, 3, 16, 16, generator=generator)
    layer = Standardize([0.0] * 3, [1.0] * 3)
    found = layer(pixels)
    torch.testing.assert_close(found.mean(dim=(1, 2, 3)), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.flatten(1).std(dim=1, correction=0), torch.ones(2))
    offsets = pixels.mean(dim=(2, 3)) - pixels.mean(dim=(1, 2, 3)).unsqueeze(1)
    torch.testing.assert_close(
        found.mean(dim=(2, 3)) * pixels.flatten(1).std(dim=1, correction=0, keepdim=True), offsets
    )


def test_a_flat_image_stays_flat():
    layer = Standardize([0.5] * 3, [0.25] * 3)
    assert torch.equal(layer(torch.ones(1, 3, 4, 4)), torch.zeros(1, 3, 4, 4))
    nearly = torch.full((1, 3, 8, 8), 0.5)
    nearly[..., 0, 0] += 1 / 255
    assert layer(nearly).abs().max() < 0.4


@pytest.mark.parametrize("name", ["fastnet", "wide_fastnet"])
def test_brightness_and_contrast_make_no_difference_to_a_standardized_model(name):
    images = 0.25 + 0.5 * torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    built = {"classes": 10, "image_size": (32, 32), "mean": (0.4, 0.5, 0.6), "std": (0.2, 0.25, 0.2)}
    model, plain = build(f"{name}_standardized", **built).eval(), build(name, **built).eval()
    model.load_state_dict(plain.state_dict())  # the weights of one fit the other
    with torch.no_grad():
        torch.testing.assert_close(model(0.3 * images + 0.5), model(images), atol=1e-4, rtol=1e-4)
        assert (plain(0.3 * images + 0.5) - plain(images)).abs().max() > 0.01
