"""Position embeddings for images of another size: against timm's own, and by what a resampling must keep."""

import pytest
import torch
from real_torchvision import need

from dign.models import build
from dign.models.positions import resample_positions
from dign.runs.weight_matching import head_tensors, match_names


@pytest.mark.parametrize("extra", [0, 1, 2])
def test_it_is_what_timm_does(extra):
    layers = need("timm.layers", "timm")
    found = torch.randn(1, extra + 14 * 14, 6, generator=torch.Generator().manual_seed(0))
    wanted = layers.resample_abs_pos_embed(found, [10, 10], num_prefix_tokens=extra)
    assert torch.allclose(resample_positions("pos_embed", found, (1, extra + 100, 6)), wanted, atol=1e-6)


def test_a_ramp_over_the_image_stays_one_and_extra_tokens_stay_as_they_are():
    rows = torch.arange(8.0).view(8, 1, 1).expand(8, 8, 2)
    found = torch.cat((torch.full((1, 1, 2), 9.0), rows.reshape(1, 64, 2)), 1)
    larger = resample_positions("encoder.pos_embedding", found, (1, 1 + 16 * 16, 2))
    assert larger[0, 0].tolist() == [9.0, 9.0]
    middle = larger[0, 1:].view(16, 16, 2)[4:12, :, 0]
    assert torch.allclose(middle, ((torch.arange(4.0, 12.0) + 0.5) / 2 - 0.5).view(8, 1).expand(8, 16), atol=1e-3)


def test_a_table_of_relative_positions_is_resampled():
    found = torch.full((13 * 13, 3), 2.0)
    assert torch.allclose(
        resample_positions("attn.relative_position_bias_table", found, (81, 3)), torch.full((81, 3), 2.0)
    )


@pytest.mark.parametrize(
    ("name", "found", "shape"),
    [
        ("head.weight", (1, 16, 4), (1, 25, 4)),
        ("pos_embed", (1, 16, 4), (1, 25, 5)),
        ("pos_embed", (1, 15, 4), (1, 25, 4)),
        ("pos_embed", (16, 4), (1, 25, 4)),
        ("pos_embed", (1, 4, 4, 4), (1, 5, 5, 4)),
    ],
)
def test_nothing_else_is_touched(name, found, shape):
    assert resample_positions(name, torch.zeros(found), shape) is None


def test_weights_of_one_size_start_a_transformer_for_another():
    need("timm", "timm")
    trained = build("timm:test_vit", classes=1000, image_size=(160, 160))[1].state_dict()
    model = build("timm:test_vit", classes=7, image_size=(96, 96))
    wanted = model.state_dict()
    matched = match_names(trained, wanted, head_tensors(model))
    assert matched["1.pos_embed"].shape == wanted["1.pos_embed"].shape != trained["pos_embed"].shape
    assert torch.equal(matched["1.cls_token"], trained["cls_token"])
