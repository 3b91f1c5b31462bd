import numpy as np
import pytest
import torch
from scipy import stats

from dign.corruptions import corrupt, noise


def published(name: str, x: np.ndarray, c: float, rng: np.random.Generator) -> np.ndarray:
    """The four definitions, one draw per value."""
    if name == "gaussian_noise":
        x = x + rng.normal(size=x.shape) * c
    elif name == "speckle_noise":
        x = x + x * rng.normal(size=x.shape) * c
    elif name == "shot_noise":
        x = rng.poisson(x * c) / float(c)
    else:
        u = rng.uniform(size=x.shape)
        x = np.where(u < c / 2, 1.0, np.where(u < c, 0.0, x))
    return (np.clip(x, 0, 1) * 255).astype(np.uint8)


@pytest.mark.parametrize(
    "name, severity, c", [("gaussian_noise", 3, 0.08), ("speckle_noise", 5, 0.2), ("shot_noise", 5, 50)]
)
@pytest.mark.parametrize("level", [0, 1, 40, 128, 254, 255])
def test_draws_have_the_distribution_of_the_definition(name: str, severity: int, c: float, level: int) -> None:
    count = 64 * 48 * 3 * 20
    ours = corrupt(torch.full((20, 3, 64, 48), level, dtype=torch.uint8), name, severity, profile="cifar").flatten()
    theirs = published(name, np.full(count, level / 255), c, np.random.default_rng(level))
    a, b = np.bincount(ours.numpy(), minlength=256), np.bincount(theirs, minlength=256)
    seen = a + b > 20
    chi_square = float(((a - b)[seen] ** 2 / (a + b)[seen]).sum())
    assert chi_square < stats.chi2.ppf(1 - 1e-6, max(int(seen.sum()) - 1, 1))


@pytest.mark.parametrize("photons", [3, 50, 500])
def test_shot_probabilities_are_poisson(photons: int) -> None:
    table = noise.shot_transitions(photons)
    level = 77
    counts = np.arange(0, photons * 3 + 50)
    values = (np.clip(counts / float(photons), 0, 1) * 255).astype(np.uint8)
    expected = np.bincount(values, stats.poisson.pmf(counts, photons * level / 255.0), minlength=256)
    np.testing.assert_allclose(table[level], expected, atol=1e-12)


def test_gaussian_probabilities_are_areas_under_the_normal_curve() -> None:
    table = noise.gaussian_transitions(0.1)
    bounds = np.concatenate([[-np.inf], np.arange(1, 256) / 255, [np.inf]])
    expected = np.diff(stats.norm.cdf(bounds, loc=100 / 255, scale=0.1))
    np.testing.assert_allclose(table[100], expected, atol=1e-12)


def test_impulse_replaces_half_by_white_and_half_by_black() -> None:
    table = noise.impulse_transitions(0.07)
    assert table[90, 90] == pytest.approx(0.93) and table[90, 0] == table[90, 255] == pytest.approx(0.035)
    assert table[255, 255] == pytest.approx(0.965)


@pytest.mark.parametrize(
    "table",
    [noise.gaussian_transitions(0.38), noise.speckle_transitions(0.6), noise.shot_transitions(3)],
    ids=["gaussian", "speckle", "shot"],
)
def test_alias_columns_add_up_to_the_probabilities(table: np.ndarray) -> None:
    np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-12)
    rows = noise._alias_rows(table)
    for level in (0, 3, 128, 255):
        entries = rows[level]
        kept, alias = (entries >> 8) / 2**23, entries & 255
        rebuilt = kept / 256 + np.bincount(alias, (1 - kept) / 256, minlength=256)
        np.testing.assert_allclose(rebuilt, table[level], atol=2e-7)
