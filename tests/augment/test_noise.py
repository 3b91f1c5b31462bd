import pytest
import torch

from dign.augment.noise import add_diverse_gaussian_noise, add_gaussian_noise


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_noise_has_the_given_level_for_all_or_for_each_image():
    x = torch.full((4, 3, 64, 64), 0.5)
    same = add_gaussian_noise(x, 0.2, generator()) - x
    assert same.flatten(1).std(1).tolist() == pytest.approx([0.2] * 4, rel=0.03)
    levels = torch.tensor([0.0, 0.1, 0.2, 0.4])
    each = add_gaussian_noise(x, levels, generator()) - x
    assert each.flatten(1).std(1).tolist() == pytest.approx(levels.tolist(), rel=0.03)
    assert each.mean().abs() < 0.01


def test_diverse_levels_are_uniform_and_nothing_is_clipped():
    x = torch.zeros(2000, 3, 8, 8)
    noisy = add_diverse_gaussian_noise(x, 0.6, generator())
    levels = noisy.flatten(1).std(1) / 0.6
    quantiles = torch.quantile(levels, torch.tensor([0.1, 0.5, 0.9]))
    assert quantiles.tolist() == pytest.approx([0.1, 0.5, 0.9], abs=0.04)
    assert noisy.min() < -1
    assert torch.equal(x, torch.zeros_like(x)), "the argument is left alone"


def test_the_type_of_the_images_stays():
    for dtype in (torch.float64, torch.bfloat16):
        assert add_diverse_gaussian_noise(torch.zeros(2, 3, 4, 4, dtype=dtype), 0.1).dtype == dtype
