"""The operations, their strengths and the published table against torchvision's."""

import pytest
import torch
from real_torchvision import need

from dign.augment.policies import (
    AUTO_AUGMENT_CIFAR10,
    OPERATIONS,
    SIGNED,
    TRIVIAL,
    Assignment,
    apply,
    auto_amounts,
    auto_augment,
    trivial_amounts,
    trivial_augment,
)
from dign.core.errors import UserError

THEIR_NAMES = {"nothing": "Identity", "autocontrast": "AutoContrast"}
COLORS = ("nothing", "brightness", "color", "contrast", "sharpness", "posterize", "solarize", "equalize", "invert")


def their_name(name):
    return THEIR_NAMES.get(name) or "".join(part.title() for part in name.split("-"))


@pytest.fixture
def images():
    """Smooth and random at once, so that equal levels occur and neighbors differ."""
    noise = torch.rand(6, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    ramp = torch.linspace(0, 1, 16)[:, None] * torch.linspace(0.2, 1, 16)
    return ((0.3 * noise + 0.7 * ramp) * 255).to(torch.uint8)


def ours(images, name, amount):
    index = torch.full((len(images),), OPERATIONS.index(name))
    return apply(images, Assignment(index, torch.full((len(images),), float(amount))))


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_torchvision_s(name, images):
    """Pixel by pixel, but for ties of the nearest pixel and levels that are rounded rather than cut down."""
    module = need("torchvision.transforms.autoaugment", "torchvision")
    nearest = need("torchvision.transforms", "torchvision").InterpolationMode.NEAREST
    for level in (0, 1, 7, 16, 25, 30):
        for sign in (1, -1) if name in SIGNED else (1,):
            amount = sign * trivial_amounts(name)[level].item()
            expected = module._apply_op(images, their_name(name), amount, nearest, None)
            distance = (ours(images, name, amount).int() - expected.int()).abs()
            if name in COLORS or name == "autocontrast":
                assert distance.max() <= 1, (level, sign)
            else:
                assert (distance > 0).float().mean() < 0.01, (level, sign)


def test_the_strengths_are_torchvision_s():
    module = need("torchvision.transforms.autoaugment", "torchvision")
    theirs = module.AutoAugment(module.AutoAugmentPolicy.CIFAR10)
    for size in ((32, 32), (16, 64)):
        for name, (amounts, signed) in theirs._augmentation_space(10, size).items():
            (mine,) = [each for each in OPERATIONS if their_name(each) == name]
            assert signed == (mine in SIGNED)
            if amounts.dim():
                torch.testing.assert_close(auto_amounts(mine, size), amounts.float())
    for name, (amounts, signed) in module.TrivialAugmentWide()._augmentation_space(31).items():
        (mine,) = [each for each in TRIVIAL if their_name(each) == name]
        assert signed == (mine in SIGNED)
        if amounts.dim():
            torch.testing.assert_close(trivial_amounts(mine), amounts.float())
    assert len(TRIVIAL) == len(module.TrivialAugmentWide()._augmentation_space(31)) == 14


def test_the_table_is_torchvision_s():
    module = need("torchvision.transforms.autoaugment", "torchvision")
    theirs = module.AutoAugment(module.AutoAugmentPolicy.CIFAR10).policies
    mine = [tuple((their_name(n), p, level) for n, p, level in row) for row in AUTO_AUGMENT_CIFAR10]
    assert mine == [tuple((name, p, level or 0) for name, p, level in row) for row in theirs]


def test_every_image_gets_an_operation_of_its_own():
    """1400 copies of an image, of which some stay as they are: operations may do nothing."""
    image = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)).mul(255).round().div(255)
    x = image.expand(1400, -1, -1, -1)
    for augment, least in ((trivial_augment, 200), (auto_augment, 60)):
        made = augment(x, torch.Generator().manual_seed(0))
        assert len({tuple(row) for row in made.flatten(1).tolist()}) > least
        same = (made == x).flatten(1).all(1).float().mean().item()
        assert 1 / 14 < same < 0.45
        assert torch.equal(made, augment(x, torch.Generator().manual_seed(0)))
        assert made.min() >= 0 and made.max() <= 1


def test_what_happens_to_an_image_is_the_table_s_row_for_it(monkeypatch):
    """The numbers that are drawn are given: sub-policy 1, both operations, the second with its sign turned."""
    x = torch.rand(2, 3, 16, 16, generator=torch.Generator().manual_seed(1)).mul(255).round().div(255)
    draw = torch.tensor([[1.5 / 25, 0.0, 0.0, 0.9, 0.1], [1.5 / 25, 0.71, 0.0, 0.9, 0.1]])
    monkeypatch.setattr("dign.augment.policies._draw_on_host", lambda *_: draw)
    images = (x * 255).round().to(torch.uint8)
    rotated = ours(images, "rotate", auto_amounts("rotate", (16, 16))[2])
    shift = -auto_amounts("translate-x", (16, 16))[9].item()
    expected = torch.stack((ours(rotated, "translate-x", shift)[0], ours(images, "translate-x", shift)[1]))
    assert torch.equal((auto_augment(x) * 255).round().to(torch.uint8), expected)


def test_trivial_augment_takes_operation_level_and_sign_as_drawn(monkeypatch):
    """Operation 5 of 14, rotate, at level 10 of 31, 45 degrees, either way; operation 11, solarize, has no sign."""
    x = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(1)).mul(255).round().div(255)
    draw = torch.tensor([[5.5 / 14, 10.5 / 31, 0.9], [5.5 / 14, 10.5 / 31, 0.1], [11.5 / 14, 15.5 / 31, 0.1]])
    monkeypatch.setattr("dign.augment.policies._draw_on_host", lambda *_: draw)
    images = (x * 255).round().to(torch.uint8)
    expected = torch.stack(
        (ours(images, "rotate", 45.0)[0], ours(images, "rotate", -45.0)[1], ours(images, "solarize", 127.5)[2])
    )
    assert torch.equal((trivial_augment(x) * 255).round().to(torch.uint8), expected)


@pytest.mark.parametrize("augment", [auto_augment, trivial_augment])
def test_gray_images_are_color_images_with_equal_channels(augment):
    gray = torch.rand(300, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    made = augment(gray, torch.Generator().manual_seed(0))
    expected = augment(gray.expand(-1, 3, -1, -1), torch.Generator().manual_seed(0))
    assert torch.equal(made, expected[:, :1])
    with pytest.raises(UserError, match="not 4 channels"):
        augment(torch.rand(2, 4, 8, 8))
