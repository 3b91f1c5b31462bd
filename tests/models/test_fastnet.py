"""The whitening first layer of FastNet."""

import torch
from torch.nn import functional

from dign.models import build, channel_statistics, whiten
from dign.models.fastnet import WHITENING_DAMPING


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
