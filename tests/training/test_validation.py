"""Validation, worked out by hand."""

import math

import pytest
import torch
from torch import nn

from dign.data.dataset import Split
from dign.methods import Standard
from dign.training.validation import validate


class FirstPixel(nn.Module):
    """Logits (0, log 3) for a white first pixel, else (log 3, 0): probabilities 1/4 and 3/4."""

    def forward(self, x):
        white = x[:, 0, 0, 0] > 0.5
        return math.log(3) * torch.stack([~white, white], 1).float()


@pytest.mark.parametrize("batch_size", [1, 2, 500])
def test_accuracy_and_loss_do_not_depend_on_the_batch_size(batch_size):
    images = torch.zeros(4, 3, 2, 2, dtype=torch.uint8)
    images[2:, 0, 0, 0] = 255
    split = Split(images, torch.tensor([0, 1, 1, 1]))  # the second is wrong
    model = FirstPixel().train()
    scores = validate(model, Standard(), split, torch.device("cpu"), seed=0, batch_size=batch_size)
    assert scores["accuracy"] == 75
    assert scores["balanced_accuracy"] == pytest.approx((100 + 200 / 3) / 2)
    assert scores["loss"] == pytest.approx((3 * math.log(4 / 3) + math.log(4)) / 4, rel=1e-6)
    assert not model.training
