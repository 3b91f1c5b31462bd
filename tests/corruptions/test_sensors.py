"""Noise of sensors, against the distributions that define it."""

import numpy as np
import pytest
import torch
from scipy import stats

from dign.corruptions import corrupt
from dign.corruptions.sensors import FULL_WELL, READ_NOISE, _demosaic, _filters, _light_tables, poisson_quantiles

COUNT = 60


def flat(value: int, channels: int = 3, side: int = 32) -> torch.Tensor:
    return torch.full((COUNT, channels, side, side), value, dtype=torch.uint8)


@pytest.mark.parametrize("severity, sigma", [(1, 0.056), (5, 0.266)])
@pytest.mark.parametrize("value", [0, 40, 130, 255])
def test_iso_noise_is_poisson_clipped_then_normal(severity, sigma, value):
    made = corrupt(flat(value), "iso_noise", severity).flatten().numpy() / 255
    counts = np.arange(80)
    chances = stats.poisson.pmf(counts, 25 * value / 255)
    for level in (0.05, 0.3, 0.6, 0.95):
        expected = chances @ stats.norm.cdf((np.ceil(level * 255) / 255 - np.minimum(counts / 25, 1)) / sigma)
        share = (made < np.ceil(level * 255) / 255 - 1e-9).mean()
        assert abs(share - expected) < 5 * np.sqrt(0.25 / made.size) + 1e-3


def test_low_light_squares_the_stretched_image_and_darkens_it():
    """Of a ramp from 20 to 220: mean c ((x - 20) / 200)^2, deviation of Poisson(120 x) / 120 and of the reading."""
    ramp = torch.arange(20, 221, dtype=torch.uint8).repeat(COUNT * 4, 3, 8, 1)
    for severity, brightest in ((1, 0.6), (5, 0.2)):
        made = corrupt(ramp, "low_light", severity).double() / 255
        expected = brightest * (torch.arange(201).double() / 200) ** 2
        bright = expected > 0.08  # where nothing is cut off
        off = made.mean((0, 1, 2)) + 0.5 / 255 - expected
        assert float(off[bright].abs().max()) < 0.004 and abs(float(off[bright].mean())) < 3e-4
        deviation = (expected / 120 + 0.018**2 + (1 / 255) ** 2 / 12).sqrt()
        ratio = made.std((0, 1, 2)) / deviation
        assert abs(float(ratio[bright].mean()) - 1) < 0.01


def test_an_image_of_one_value_is_dark():
    assert float(corrupt(flat(90), "low_light", 1).float().mean()) < 4


def test_color_quant_keeps_the_highest_bits():
    image = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16)
    for severity, bits in zip(range(1, 6), (5, 4, 3, 2, 1), strict=True):
        made = corrupt(image, "color_quant", severity).flatten().tolist()
        step = 2 ** (8 - bits)
        assert made == [value // step * step for value in range(256)]


def to_linear(level: float) -> float:
    return level / 12.92 if level <= 0.04045 else ((level + 0.055) / 1.055) ** 2.4


@pytest.mark.parametrize("severity, iso", [(1, 1600), (3, 6400)])
def test_camera_noise_of_a_gray_sensor_has_the_variance_of_photons_and_of_the_reading(severity, iso):
    made = corrupt(flat(128, channels=1), "camera_noise", severity).flatten().numpy() / 255
    light = np.array([to_linear(level) for level in made])
    full = FULL_WELL * 100 / iso
    x = to_linear(128 / 255)
    expected = np.sqrt(x * full + READ_NOISE**2) / full
    assert abs(light.std() / expected - 1) < 0.02 and abs(light.mean() - x) < 0.02 * expected


def test_demosaicing_interpolates_what_a_filter_does_not_see():
    noise = torch.arange(36, dtype=torch.int32).view(1, 6, 6) * 4
    spread = _demosaic(noise, _filters(6, 6, noise.device))[0]
    assert _filters(3, 4, noise.device)[0].tolist() == [[0, 1, 0, 1], [1, 2, 1, 2], [0, 1, 0, 1]]
    assert torch.equal(spread[:, 2:4, 2:4], noise[:, 2:4, 2:4].expand(3, -1, -1)), "a plane stays a plane"
    single = torch.zeros(1, 6, 6, dtype=torch.int32)
    single[0, 2, 2] = 100  # red
    spread = _demosaic(single, _filters(6, 6, single.device))[0]
    assert spread[0, 1:4, 1:4].tolist() == [[25, 50, 25], [50, 100, 50], [25, 50, 25]]
    assert int(spread[1:].abs().sum()) == 0


def test_camera_noise_is_correlated_between_neighbors_and_not_between_filters():
    change = corrupt(flat(128), "camera_noise", 3).double() - 128

    def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
        return float(torch.corrcoef(torch.stack([a.flatten(), b.flatten()]))[0, 1])

    red = change[:, 0]
    assert correlation(red[..., :-1], red[..., 1:]) > 0.5 and abs(correlation(red[..., :-3], red[..., 3:])) < 0.03
    assert abs(correlation(red, change[:, 2])) < 0.03
    deviations = change.std((0, 2, 3))
    assert float(deviations[1]) > float(deviations[0]), "twice as many pixels are green, so less is smoothed"


def test_light_and_levels_are_inverse():
    light, levels = _light_tables(torch.device("cpu"))
    assert levels[light.long()].tolist() == list(range(256))


def test_quantiles_have_the_moments_of_poisson_variables():
    rates = np.array([0.0, 0.3, 4.0, 60.0, 375.0])
    table = poisson_quantiles(rates).astype(float)
    np.testing.assert_allclose(table.mean(1), rates, atol=2e-3 * np.sqrt(rates.max()))
    np.testing.assert_allclose(table.var(1), rates, rtol=0.01)
