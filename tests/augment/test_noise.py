import pytest
import torch

from dign.augment.noise import (
    BALL,
    IMPULSE,
    UNIFORM,
    add_diverse_gaussian_noise,
    add_gaussian_noise,
    add_one_of_thirty,
)


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


def test_masked_noise_leaves_the_other_values_as_they_are():
    x = torch.full((200, 3, 16, 16), 0.5)
    noisy = add_diverse_gaussian_noise(x, 1.2, torch.Generator().manual_seed(0), density=0.2)
    changed = noisy != x
    assert changed.float().mean().item() == pytest.approx(0.2, abs=0.005)
    assert (noisy - x)[changed].var().item() == pytest.approx(1.2**2 / 3, rel=0.1)
    assert add_gaussian_noise(x, 0.3, density=0.0).equal(x)


def test_one_of_thirty_noises_for_each_image():
    """Each image has one kind at one strength: they are told apart by what they do to a gray image."""
    x = torch.full((900, 3, 32, 32), 0.5)
    added = (add_one_of_thirty(x, torch.Generator().manual_seed(0)) - x).flatten(2)
    largest, length = added.abs().amax((1, 2)), added.square().sum((1, 2)).sqrt()
    untouched = (added == 0).all(1).float().mean(1)  # pixels, all channels
    impulse = untouched > 0.5
    assert impulse.float().mean().item() == pytest.approx(1 / 3, abs=0.05)
    assert (largest[impulse] == 0.5).float().mean() > 0.98  # the rarest may hit no pixel
    shares = 1 - untouched[impulse]
    assert shares.mean().item() == pytest.approx(sum(IMPULSE) / 10, rel=0.15)
    # Uniform noise of width w has the length w sqrt(3072 / 3) = 32 w, and no value beyond w.
    flat = ~impulse & (largest <= 1.05 * length / 32)
    widths = torch.tensor(UNIFORM)
    assert flat.float().mean().item() == pytest.approx(1 / 3, abs=0.05)
    assert (largest[flat][:, None] / widths - 1).abs().amin(1).max() < 0.01
    ball = ~impulse & ~flat
    assert (length[ball][:, None] / torch.tensor(BALL) - 1).abs().amin(1).max() < 0.01
