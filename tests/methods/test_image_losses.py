import torch
from torch import nn
from torch.nn import functional

from dign.methods.image_losses import cross_entropy_by_image, image_losses


def test_the_cross_entropy_of_each_image(recorder, x, y):
    expected = functional.cross_entropy(recorder.body(x), y, reduction="none")
    torch.testing.assert_close(image_losses(recorder, y)(x), expected)
    torch.testing.assert_close(cross_entropy_by_image(recorder.body(x), y, 6), expected)


def test_pixels_are_averaged(x):
    labels = torch.randint(0, 4, (6, 8, 8))
    model = nn.Conv2d(3, 4, 1)
    expected = functional.cross_entropy(model(x), labels, reduction="none").mean((1, 2))
    torch.testing.assert_close(image_losses(model, labels)(x), expected)
