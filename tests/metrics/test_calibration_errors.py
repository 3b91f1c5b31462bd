"""Adaptive, debiased and smooth calibration errors against published packages, slow definitions and closed forms."""

import inspect
import math
from itertools import pairwise

import numpy as np
import pytest
import torch

import dign
from dign.metrics import AdaptiveECE, DebiasedRMSE, adaptive_ece, debiased_rmse, smooth_ece
from dign.metrics.calibration_bins import calibration as plain


def batch(seed=0, n=600, classes=4, sharp=2.0):
    generator = torch.Generator().manual_seed(seed)
    probabilities = torch.softmax(sharp * torch.randn(n, classes, generator=generator, dtype=torch.float64), dim=1)
    return probabilities, torch.randint(classes, (n,), generator=generator)


def two_classes(confidence, correct):
    """Predictions of class 0 with these confidences above 1/2."""
    p = torch.as_tensor(confidence, dtype=torch.float64)
    return torch.stack([p, 1 - p], 1), torch.where(torch.as_tensor(correct), 0, 1)


@pytest.mark.parametrize("bins", [1, 15, 16])
def test_adaptive_ece_agrees_with_a_slow_definition(bins):
    probabilities, labels = batch()
    confidence, predicted = probabilities.max(1)
    order = np.argsort(-confidence.numpy())
    right = (predicted == labels).numpy().astype(float)[order]
    edges = [index * 600 // bins for index in range(bins + 1)]
    parts = [slice(low, high) for low, high in pairwise(edges)]
    expected = sum(
        len(right[part]) / 600 * abs(right[part].mean() - confidence.numpy()[order][part].mean()) for part in parts
    )
    assert adaptive_ece(probabilities, labels, bins) == pytest.approx(100 * expected, rel=1e-9)


def test_fewer_images_than_bins_are_bins_of_one():
    probabilities, labels = two_classes([0.9, 0.6], [True, False])
    assert adaptive_ece(probabilities, labels, 16) == pytest.approx(35)
    assert debiased_rmse(probabilities, labels, 16) == 0


def test_debiased_rmse_agrees_with_uncertainty_calibration():
    published = pytest.importorskip("calibration")
    for seed, n in ((0, 600), (1, 480)):
        probabilities, labels = batch(seed, n)
        theirs = published.get_calibration_error(
            probabilities.numpy(), labels.numpy(), p=2, debias=True, mode="top-label"
        )
        assert debiased_rmse(probabilities, labels, 15) == pytest.approx(100 * theirs, rel=1e-6)


def draw_tied(values, n, seed=0, off=0.05):
    """Predictions with these confidences alone, right less often by `off`."""
    generator = np.random.default_rng(seed)
    confidence = generator.choice(values, n)
    return two_classes(confidence, generator.random(n) < confidence - off)


TIED = {
    "one": [0.9],
    "three": [0.6, 0.8, 0.95],
    "rounded": np.linspace(0.5, 0.97, 48),
    "saturated": np.concatenate([np.full(300, 0.9999), np.linspace(0.55, 0.99, 500)]),
}


@pytest.mark.parametrize("values", TIED.values(), ids=TIED)
@pytest.mark.parametrize("seed", [0, 1])
def test_ties_share_a_bin_as_in_uncertainty_calibration(values, seed):
    published = pytest.importorskip("calibration")
    probabilities, labels = draw_tied(values, 480, seed)
    given = probabilities.numpy(), labels.numpy()
    options = {"num_bins": 15, "mode": "top-label"}
    squared = published.lower_bound_scaling_ce(*given, p=2, debias=True, **options)
    absolute = published.lower_bound_scaling_ce(*given, p=1, debias=False, **options)
    assert debiased_rmse(probabilities, labels, 15) == pytest.approx(100 * squared, rel=1e-6)
    assert adaptive_ece(probabilities, labels, 15) == pytest.approx(100 * absolute, rel=1e-6)


def test_one_estimate_is_debiased_once():
    given = two_classes([0.9] * 160, [True] * 128 + [False] * 32)
    assert debiased_rmse(*given) == pytest.approx(100 * math.sqrt(0.1**2 - 0.8 * 0.2 / 159))
    pair = two_classes([0.9] * 2, [True, True])
    assert debiased_rmse(*pair) == pytest.approx(10), "fewer images than bins, and still one bin of two"


def test_the_squared_error_of_ties_is_without_bias():
    """Three confidences, 5 points off: the mean of the squares is that of 5, up to chance."""
    errors = [debiased_rmse(*draw_tied([0.6, 0.8, 0.95], 400, seed)) for seed in range(200)]
    assert 4.4 < math.sqrt(np.mean(np.square(errors))) < 5.8


def test_ties_do_not_depend_on_the_order_or_on_the_batches():
    probabilities, labels = draw_tied([0.6, 0.8, 0.95], 333)
    for kind, function in ((AdaptiveECE, adaptive_ece), (DebiasedRMSE, debiased_rmse)):
        expected = function(probabilities, labels)
        assert function(probabilities.flip(0), labels.flip(0)) == pytest.approx(expected, rel=1e-12)
        first, second = kind(), kind()
        first.update(probabilities[:100], labels[:100])
        second.update(probabilities[100:], labels[100:])
        assert first.merge(second).compute() == pytest.approx(expected, rel=1e-12)


def test_the_debiased_error_of_a_calibrated_model_is_far_below_the_plain_one():
    """The plain error of 360 calibrated predictions is what chance makes it; the debiased one's square has mean 0."""
    generator = np.random.default_rng(0)
    plain_errors, debiased = [], []
    for _ in range(60):
        confidence = generator.uniform(0.5, 1, 360)
        given = two_classes(confidence, generator.random(360) < confidence)
        plain_errors.append(plain(*given).rmse)
        debiased.append(debiased_rmse(*given))
    assert np.mean(plain_errors) > 5 and np.mean(debiased) < 2.5


def slow_smooth(confidence, residual, h, points=20_001):
    """smECE_h by images beyond the ends of [0,1] and the trapezoidal rule."""
    t = np.linspace(0, 1, points)
    total = np.zeros(points)
    for c, r in zip(confidence, residual, strict=True):
        for mirrored in [2 * k + s * c for k in range(-3, 4) for s in (1, -1)]:
            total += r * np.exp(-((t - mirrored) ** 2) / (2 * h * h)) / (h * math.sqrt(2 * math.pi))
    return np.trapezoid(np.abs(total), t) / len(confidence)


def test_smooth_ece_is_the_fixed_point_of_the_definition():
    generator = np.random.default_rng(3)
    confidence = generator.uniform(0.5, 1, 40)
    correct = generator.random(40) < 0.6
    got = smooth_ece(*two_classes(confidence, correct)) / 100
    assert slow_smooth(confidence, confidence - correct, got) == pytest.approx(got, abs=2e-4)


def test_smooth_ece_agrees_with_relplot():
    relplot = pytest.importorskip("relplot")
    for seed, sharp in ((0, 2.0), (1, 6.0), (2, 0.7)):
        probabilities, labels = batch(seed, 2000, sharp=sharp)
        confidence, predicted = probabilities.max(1)
        theirs = relplot.metrics.smECE(confidence.numpy(), (predicted == labels).numpy().astype(float))
        assert smooth_ece(probabilities, labels) == pytest.approx(100 * theirs, rel=0.02)


def test_one_confidence_has_one_error_whatever_the_bandwidth():
    given = two_classes([0.8] * 100, [True] * 50 + [False] * 50)
    assert smooth_ece(*given) == pytest.approx(30, abs=0.01)
    assert adaptive_ece(*given) == pytest.approx(30)
    assert debiased_rmse(*given, bins=1) == pytest.approx(100 * math.sqrt(0.09 - 0.25 / 99))
    assert smooth_ece(*two_classes([0.75] * 4, [True, True, True, False])) == pytest.approx(0, abs=0.01)


def test_no_function_is_hidden_by_the_module_that_defines_it():
    for name in dign.metrics.__all__:
        assert not inspect.ismodule(getattr(dign.metrics, name)), name
    assert dign.metrics.calibration is dign.calibration and dign.metrics.accuracy is dign.accuracy
