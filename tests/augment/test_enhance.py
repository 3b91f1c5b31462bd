"""Against PIL, on random images and factors on both sides of one."""

import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from dign.augment import enhance

FACTORS = (0.0, 0.01, 0.4, 0.97, 1.0, 1.3, 1.99)
THEIRS = {
    "brightness": ImageEnhance.Brightness, "color": ImageEnhance.Color, "contrast": ImageEnhance.Contrast,
    "sharpness": ImageEnhance.Sharpness,
}  # fmt: skip


def pictures():
    images = torch.randint(0, 256, (len(FACTORS), 3, 16, 20), generator=torch.Generator().manual_seed(0))
    images = images.to(torch.uint8)
    return images, [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in images]


def to_tensor(picture):
    return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).view(16, 20, 3).permute(2, 0, 1)


@pytest.mark.parametrize("name", THEIRS)
def test_the_levels_are_those_of_pil(name):
    images, originals = pictures()
    before = images.clone()
    ours = getattr(enhance, name)(images, torch.tensor(FACTORS))
    assert torch.equal(images, before)
    for picture, factor, result in zip(originals, FACTORS, ours, strict=True):
        distance = (result.int() - to_tensor(THEIRS[name](picture).enhance(factor)).int()).abs()
        assert distance.max() <= 1 and (distance > 0).float().mean() < 0.002


def test_inverted_twice_is_the_image():
    images, originals = pictures()
    assert torch.equal(enhance.invert(images)[0], to_tensor(ImageOps.invert(originals[0])))
    assert torch.equal(enhance.invert(enhance.invert(images)), images)


def test_images_too_small_to_smooth_stay_as_they_are():
    image = torch.tensor([[[[1, 2]]] * 3], dtype=torch.uint8).view(1, 3, 1, 2)
    assert torch.equal(enhance.sharpness(image, torch.tensor([0.0])), image)
