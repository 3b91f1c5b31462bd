"""Normalization is a layer, and its statistics are those of the images."""

import pytest
import torch
from torch import nn

from dign.models import build, channel_statistics
from dign.models.normalize import Normalize, Normalized

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
