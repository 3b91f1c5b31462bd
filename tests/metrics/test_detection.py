"""AUROC, AUPR and FPR95 against scikit-learn and by hand."""

import math

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import aupr, auroc, detect, fpr95, outlier_score


@pytest.mark.parametrize("levels", [7, 10**6], ids=["many ties", "no ties"])
def test_agrees_with_scikit_learn(levels):
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

    generator = np.random.default_rng(0)
    positive = np.round(generator.normal(0.6, 1, 300) * levels) / levels
    negative = np.round(generator.normal(0, 1, 170) * levels) / levels
    truth, scores = np.r_[np.ones(300), np.zeros(170)], np.r_[positive, negative]
    got = detect(torch.from_numpy(positive), torch.from_numpy(negative))
    assert got.auroc == pytest.approx(100 * roc_auc_score(truth, scores))
    assert got.aupr == pytest.approx(100 * average_precision_score(truth, scores))
    fall, recall, _ = roc_curve(truth, scores, drop_intermediate=False)
    assert got.fpr95 == pytest.approx(100 * fall[np.argmax(recall >= 0.95)])


def test_chance_and_perfection():
    same = torch.zeros(10)
    assert (detect(same, same).auroc, detect(same, same).aupr, detect(same, same).fpr95) == (50, 50, 100)
    perfect = detect(torch.ones(10), torch.zeros(3))
    assert (perfect.auroc, perfect.aupr, perfect.fpr95) == (100, 100, 0)
    assert detect(torch.ones(3), torch.empty(0)) is None


def test_right_is_told_from_wrong_by_confidence():
    from sklearn.metrics import roc_auc_score

    generator = torch.Generator().manual_seed(1)
    probabilities = torch.softmax(2 * torch.randn(200, 4, generator=generator), 1)
    labels = torch.randint(4, (200,), generator=generator)
    confidence, predicted = probabilities.max(1)
    right = (predicted == labels).numpy()
    assert auroc(probabilities, labels) == pytest.approx(100 * roc_auc_score(right, confidence.numpy()))
    assert 0 < fpr95(probabilities, labels) <= 100 and 0 < aupr(probabilities, labels) <= 100


def test_all_right_leaves_nothing_to_tell_apart():
    with pytest.raises(UserError, match="All 2 predictions are right"):
        auroc(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 0]))


def test_outlier_scores_by_hand():
    logits = torch.tensor([[0.0, 0.0], [math.log(3), 0.0]])
    assert outlier_score(logits, "softmax").tolist() == pytest.approx([0.5, 0.75])
    entropy = [-math.log(2), 0.75 * math.log(0.75) + 0.25 * math.log(0.25)]
    assert outlier_score(logits, "entropy").tolist() == pytest.approx(entropy)
    assert outlier_score(logits, "energy").tolist() == pytest.approx([math.log(2), math.log(4)])
    assert outlier_score(2 * logits, "softmax", temperature=2.0).tolist() == pytest.approx([0.5, 0.75])
    with pytest.raises(UserError, match="outlier score"):
        outlier_score(logits, "maxlogit")
