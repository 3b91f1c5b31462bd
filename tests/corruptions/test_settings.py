"""Names, families and profiles of the corruptions."""

import subprocess
import sys

import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import FAMILIES, NAMES, PROFILES, SEVERITIES, corrupt, family_of, profile_for
from dign.corruptions.settings import get_parameters


def images_of(size: tuple[int, int], count: int = 5, channels: int = 3, seed: int = 0) -> torch.Tensor:
    """Smooth pictures with some noise: random pixels alone would hide mistakes of blurs."""
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand((count, channels, 4, 5), generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=size, mode="bilinear")
    noisy = smooth * 220 + torch.rand((count, channels, *size), generator=generator) * 35
    return noisy.to(torch.uint8)


def test_there_are_nineteen_in_four_families() -> None:
    assert len(NAMES) == len(set(NAMES)) == 19
    assert {family: len(names) for family, names in FAMILIES.items()} == {
        "noise": 4,
        "blur": 5,
        "weather": 5,
        "digital": 5,
    }


def test_profiles_follow_the_size() -> None:
    assert [profile_for(s, s) for s in (8, 32, 44, 48, 64, 112, 128, 224, 500)] == [
        "cifar",
        "cifar",
        "cifar",
        "tiny-imagenet",
        "tiny-imagenet",
        "tiny-imagenet",
        "imagenet",
        "imagenet",
        "imagenet",
    ]
    assert profile_for(32, 128) == "tiny-imagenet"
    image = images_of((64, 64), 1)
    assert torch.equal(corrupt(image, "contrast", 1), corrupt(image, "contrast", 1, profile="tiny-imagenet"))


def test_listing_names_does_not_load_torch() -> None:
    program = "import sys, dign.corruptions as c; assert len(c.NAMES) == 19 and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_family_of_a_name_or_a_suggestion() -> None:
    assert {family_of(name) for name in NAMES} == set(FAMILIES)
    with pytest.raises(UserError, match="Did you mean 'fog'"):
        family_of("fogg")


@pytest.mark.parametrize("profile, side", PROFILES.items())
def test_published_sizes_have_the_published_parameters(profile: str, side: int) -> None:
    for name in NAMES:
        for severity in SEVERITIES:
            assert get_parameters(name, severity, profile, side) == get_parameters(name, severity, profile)


def test_lengths_go_with_the_side_of_the_images() -> None:
    assert get_parameters("defocus_blur", 5, "imagenet", 112) == [5, 0.5]
    assert get_parameters("defocus_blur", 5, "imagenet", 512) == [23, 0.5]  # whole, as large disks must be
    assert get_parameters("glass_blur", 5, "imagenet", 448) == [3.0, 8, 2]
    assert get_parameters("glass_blur", 1, "imagenet", 130) == [pytest.approx(0.7 * 130 / 224), 1, 2]
    assert get_parameters("motion_blur", 1, "tiny-imagenet", 96) == [15, 1.5]
    assert get_parameters("elastic_transform", 2, "imagenet", 112) == [244, 9.76, 24.4]
    assert get_parameters("spatter", 1, "imagenet", 448) == [0.65, 0.3, 8, 0.69, 0.6, 0]
    assert get_parameters("spatter", 5, "imagenet", 448) == [0.67, 0.4, 2, 0.65, 3.0, 1]
    assert get_parameters("frost", 1, "tiny-imagenet", 128) == [1, 0.3, 0.6]
    assert get_parameters("gaussian_noise", 5, "imagenet", 120) == 0.38
    assert get_parameters("defocus_blur", 5, "cifar", 20) == get_parameters("defocus_blur", 5, "cifar")


@pytest.mark.parametrize("size", [(33, 47), (96, 96), (160, 160), (512, 512)])
@pytest.mark.parametrize(
    "name", ["defocus_blur", "glass_blur", "gaussian_blur", "snow", "spatter", "elastic_transform"]
)
def test_any_size_works(name: str, size: tuple[int, int]) -> None:
    coarse = torch.rand((1, 1, 6, 7), generator=torch.Generator().manual_seed(0))
    image = (torch.nn.functional.interpolate(coarse, size=size, mode="bilinear") * 255).to(torch.uint8)
    made = corrupt(image, name, 5)
    assert made.shape == image.shape and 0.1 < float((made.float() - image.float()).abs().mean()) < 150
