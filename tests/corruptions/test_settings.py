"""Names, families and profiles of the corruptions."""

import subprocess
import sys

import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import FAMILIES, NAMES, corrupt, family_of, profile_for


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
