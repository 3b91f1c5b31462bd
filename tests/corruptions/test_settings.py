"""Names, families and profiles of the corruptions."""

import subprocess
import sys
from itertools import pairwise

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
    assert {side: profile_for(side, side) for side in (8, 32, 33, 63, 64, 65, 128, 223, 224, 500)} == {
        8: "cifar",
        32: "cifar",
        33: "32-64",
        63: "32-64",
        64: "tiny-imagenet",
        65: "64-224",
        128: "64-224",
        223: "64-224",
        224: "imagenet",
        500: "imagenet",
    }
    assert profile_for(32, 128) == "tiny-imagenet"
    image = images_of((64, 64), 1)
    assert torch.equal(corrupt(image, "contrast", 1), corrupt(image, "contrast", 1, profile="tiny-imagenet"))


def flatten(setting: object) -> list[float]:
    values = setting.values() if isinstance(setting, dict) else setting if isinstance(setting, list) else [setting]
    return [float(value) for value in values]


COUNTS = {"jpeg_compression": {0}, "glass_blur": {1, 2}, "zoom_blur": {3}, "defocus_blur": {0}}
"""Entries that are whole numbers, which move in steps of 1; a large disk's radius too."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_parameters_never_jump_between_the_published_sizes(name: str, severity: int) -> None:
    """From pixel to pixel; at 32, 64 and 224 they meet the published ones."""
    sides = range(32, 230)
    found = [flatten(get_parameters(name, severity, profile_for(side, side), side)) for side in sides]
    for place, values in enumerate(zip(*found, strict=True)):
        extent = max(values) - min(values)
        largest = max(abs(a - b) for a, b in pairwise(values))
        assert largest <= max(0.05 * extent, 1.001 * (place in COUNTS.get(name, ())))
    for profile, side in PROFILES.items():
        assert found[side - 32] == flatten(get_parameters(name, severity, profile))


def test_parameters_between_two_sizes_are_between_theirs() -> None:
    assert get_parameters("gaussian_noise", 5, "32-64") == pytest.approx((0.1 + 0.18) / 2)
    assert get_parameters("gaussian_noise", 5, "64-224", 64) == 0.18
    assert get_parameters("gaussian_noise", 5, "64-224", 500) == 0.38
    side = 64 * 3.5**0.25  # a quarter of the way
    assert get_parameters("contrast", 3, "32-64", 32 * 2**0.25) == pytest.approx(0.75 * 0.4 + 0.25 * 0.2)
    assert get_parameters("jpeg_compression", 1, "64-224", side) == 55
    assert get_parameters("defocus_blur", 1, "64-224", side) == [
        pytest.approx(0.75 * 0.5 * side / 64 + 0.25 * 3 * side / 224),
        pytest.approx(0.75 * 0.6 + 0.25 * 0.1),
    ]
    zoom = get_parameters("zoom_blur", 5, "64-224")
    assert zoom == {"start": 1.0, "stop": pytest.approx(1.275), "step": pytest.approx(0.02), "count": 15}


@pytest.mark.parametrize("side", [45, 96, 120, 160, 224])
def test_elastic_transform_mirrors_next_to_no_image(side: int) -> None:
    """A map by three points that moved mirrors where its determinant is negative; at 224 pixels 0.03 % of them do."""
    draws = torch.rand((20_000, 3, 2), generator=torch.Generator().manual_seed(side), dtype=torch.float64) * 2 - 1
    third = side // 3
    points = torch.tensor([[third, third], [third, -third], [-third, -third]], dtype=torch.float64)
    for severity in SEVERITIES:
        shift = get_parameters("elastic_transform", severity, profile_for(side, side), side)[2]
        moved = points + shift * draws
        edges = moved[:, 1:] - moved[:, :1]
        determinant = edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0]
        same_side = torch.linalg.det(points[1:] - points[:1]).sign()
        assert float((determinant.sign() != same_side).double().mean()) <= 0.002


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
