"""All scores at once are those of the single metrics, however the batches are cut."""

import pytest
import torch

from dign import metrics
from dign.core.errors import UserError
from dign.metrics.uncertainty import UNCERTAINTY, Uncertainty, UncertaintyScores, mean_scores


def batch(seed=0, n=300, classes=4):
    generator = torch.Generator().manual_seed(seed)
    probabilities = torch.softmax(2 * torch.randn(n, classes, generator=generator, dtype=torch.float64), dim=1)
    return probabilities, torch.randint(classes, (n,), generator=generator)


def test_equals_the_single_metrics_and_merges():
    probabilities, labels = batch()
    whole, left, right = Uncertainty(), Uncertainty(), Uncertainty()
    whole.update(probabilities, labels)
    left.update(probabilities[:100], labels[:100])
    right.update(probabilities[100:], labels[100:])
    scores = whole.compute()
    left.merge(right)
    for name in set(UNCERTAINTY) - {"brier", "brier_reliability", "brier_resolution", "accuracy_at_80"}:
        assert getattr(scores, name) == pytest.approx(getattr(metrics, name)(probabilities, labels)), name
        assert getattr(left.compute(), name) == pytest.approx(getattr(scores, name)), name
    assert scores.brier == pytest.approx(metrics.brier(probabilities, labels).score)
    assert scores.accuracy_at_80 == metrics.accuracy_at_coverage(probabilities, labels, 0.8)


def test_other_bins_are_refused_and_nothing_is_merged():
    metric, other = Uncertainty(16), Uncertainty(8)
    metric.update(*batch())
    other.update(*batch(1))
    before = metric.compute()
    with pytest.raises(UserError, match="bins"):
        metric.merge(other)
    assert metric.compute() == before


def test_reset_forgets():
    metric = Uncertainty()
    metric.update(*batch())
    metric.reset()
    with pytest.raises(UserError):
        metric.compute()


def test_a_mean_leaves_out_what_is_not_known():
    perfect = Uncertainty()
    perfect.update(torch.tensor([[0.9, 0.1]]), torch.tensor([0]))
    assert perfect.compute().auroc is None
    other = Uncertainty()
    other.update(*batch())
    mean = mean_scores([perfect.compute(), other.compute()])
    assert isinstance(mean, UncertaintyScores)
    assert mean.auroc == other.compute().auroc
    assert mean.nll == pytest.approx((perfect.compute().nll + other.compute().nll) / 2)


def test_moves_with_all_its_parts():
    metric = Uncertainty().to("meta")
    assert {part.device.type for part in (metric._loss, metric._classes, metric._confidences)} == {"meta"}
