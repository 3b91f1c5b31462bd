"""The stem of ResNet-18 and DenseNet-121 depends on the image size."""

import pytest

from dign.models import build


@pytest.mark.parametrize("name", ["resnet18", "densenet121"])
def test_large_images_get_the_7x7_stem(name):
    small, large = (build(name, classes=2, image_size=(side, side))[1].conv for side in (32, 64))
    assert (small.kernel_size, small.stride) == ((3, 3), (1, 1))
    assert (large.kernel_size, large.stride) == ((7, 7), (2, 2))
