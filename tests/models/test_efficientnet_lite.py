"""EfficientNet-Lite0 is the published network: timm's gives the same logits with the same weights."""

import pytest
import torch
from real_torchvision import need
from torch.nn import functional

from dign.models import count_parameters, find_preprocessing
from dign.models.efficientnet_lite import EfficientNetLite0, SameConv2d


def test_parameters_are_those_of_the_published_network():
    with torch.device("meta"):
        model = EfficientNetLite0(1000, (224, 224))
    assert count_parameters(model) == 4_652_008 and len(model.state_dict()) == 296


def test_padding_puts_the_odd_pixel_at_the_right_and_bottom():
    conv, image = SameConv2d(1, 1, 3, stride=2), torch.rand(1, 1, 8, 7)
    by_hand = functional.conv2d(functional.pad(image, (1, 1, 0, 1)), conv.weight, stride=2)
    assert torch.equal(conv(image), by_hand) and conv(image).shape[-2:] == (4, 4)


@pytest.mark.parametrize("size", [64, 97])
def test_logits_are_those_of_timm(size):
    timm = need("timm", "timm")
    ours, theirs = EfficientNetLite0(7, (size, size)).eval(), timm.create_model("tf_efficientnet_lite0", num_classes=7)
    torch.manual_seed(0)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ours.load_state_dict(dict(zip(ours.state_dict(), theirs.state_dict().values(), strict=True)))
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        assert torch.allclose(ours(images), theirs.eval()(images), rtol=1e-5)


def test_what_its_weights_expect_is_what_timm_says():
    need("timm", "timm")
    assert EfficientNetLite0.preprocessing == find_preprocessing("timm:tf_efficientnet_lite0")
