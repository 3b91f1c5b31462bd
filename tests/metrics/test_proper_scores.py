"""Log loss, Brier score and class-wise ECE against scikit-learn, uncertainty-calibration and closed forms."""

import math

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import Brier, ClasswiseECE, brier, classwise_ece, nll


def batch(seed=0, n=500, classes=5):
    generator = torch.Generator().manual_seed(seed)
    probabilities = torch.softmax(2 * torch.randn(n, classes, generator=generator, dtype=torch.float64), dim=1)
    return probabilities, torch.randint(classes, (n,), generator=generator)


def test_nll_agrees_with_scikit_learn_and_stays_finite():
    from sklearn.metrics import log_loss

    probabilities, labels = batch()
    assert nll(probabilities, labels) == pytest.approx(log_loss(labels, probabilities.numpy()), rel=1e-9)
    assert nll(torch.full((7, 4), 0.25), torch.arange(7) % 4) == pytest.approx(math.log(4))
    assert 80 < nll(torch.tensor([[1.0, 0.0]]), torch.tensor([1])) < 100, "-log of the smallest normal float32"


def test_brier_is_its_definition():
    probabilities, labels = batch()
    one_hot = np.eye(5)[labels.numpy()]
    expected = ((probabilities.numpy() - one_hot) ** 2).sum(1).mean()
    for bins in (1, 7, 16):
        assert brier(probabilities, labels, bins).score == pytest.approx(expected, rel=1e-9)


def test_the_parts_of_the_brier_score_by_hand():
    """Class 0 with p = 0.9 for four images, two of them right, and p = 0.1 for four, one of them right."""
    p = torch.tensor([0.9] * 4 + [0.1] * 4, dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1, 0, 1, 1, 1])
    got = brier(torch.stack([p, 1 - p], 1), labels)
    assert got.reliability == pytest.approx(2 * (0.5 * 0.4**2 + 0.5 * 0.15**2))
    assert got.resolution == pytest.approx(2 * (0.5 * 0.125**2 + 0.5 * 0.125**2)), "base rate 3/8; 1/2 and 1/4"
    assert got.uncertainty == pytest.approx(2 * 3 / 8 * 5 / 8)
    assert got.within == pytest.approx(0, abs=1e-9), "one probability per bin"
    assert got.score == pytest.approx(got.reliability - got.resolution + got.uncertainty)


def test_the_part_inside_the_bins_closes_the_sum():
    """Stephenson et al. (2008): the variance of p inside the bins, less twice its covariance with the outcome."""
    probabilities, labels = batch(3)
    got = brier(probabilities, labels, 4)
    within = 0.0
    for k in range(5):
        p, hit = probabilities[:, k].numpy(), (labels == k).numpy().astype(float)
        index = np.clip(np.ceil(p * 4).astype(int) - 1, 0, 3)
        for b in range(4):
            inside = index == b
            if inside.any():
                q, h = p[inside], hit[inside]
                within += inside.mean() * (q.var() - 2 * ((q - q.mean()) * (h - h.mean())).mean())
    assert got.within == pytest.approx(within, abs=1e-9)


def test_classwise_ece_agrees_with_a_slow_definition():
    probabilities, labels = batch(1)
    total = 0.0
    for k in range(5):
        for b in range(16):
            inside = [i for i in range(500) if b / 16 < probabilities[i, k] <= (b + 1) / 16]
            if inside:
                mean = sum(float(probabilities[i, k]) for i in inside) / len(inside)
                rate = sum(int(labels[i]) == k for i in inside) / len(inside)
                total += len(inside) / 500 * abs(mean - rate) / 5
    assert classwise_ece(probabilities, labels) == pytest.approx(100 * total, rel=1e-9)


@pytest.mark.parametrize("function", [nll, brier, classwise_ece])
def test_rows_that_do_not_add_up_to_one_are_refused(function):
    for row in ([0.9, 0.9], [0.2, 0.1], [0.0, 0.0]):
        with pytest.raises(UserError, match="add up to 1"):
            function(torch.tensor([[0.5, 0.5], row]), torch.tensor([0, 0]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rounded_probabilities_are_taken(dtype):
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.randn(500, 1000, generator=generator).softmax(1)
    labels = torch.randint(1000, (500,), generator=generator)
    assert nll(probabilities.to(dtype), labels) == pytest.approx(nll(probabilities, labels), rel=1e-2)


def test_classes_and_bins_cannot_change_midway():
    metric = Brier()
    metric.update(*batch(classes=3))
    with pytest.raises(UserError, match="5 classes after 3"):
        metric.update(*batch())
    with pytest.raises(UserError, match="bins=16 with one of bins=8"):
        ClasswiseECE(16).merge(ClasswiseECE(8))
    with pytest.raises(UserError, match="bins"):
        Brier(0)
