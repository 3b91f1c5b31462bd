"""mCA and mCA-N: what they count is defined here alone."""

import numpy as np
import pytest
import torch

from dign.corruptions import FAMILIES, NAMES, SEVERITIES
from dign.metrics import Calibration, counts_in_mca, mean_corruption_accuracy, noise_corruption_accuracy
from dign.metrics.aggregation import MCA_CORRUPTIONS, MCA_N_CORRUPTIONS, is_complete, name_mean, pool

ACCURACIES = {
    "gaussian_noise": {1: 0.0, 2: 0.0},
    "shot_noise": {1: 80.0, 2: 60.0},
    "impulse_noise": {1: 50.0, 2: 50.0},
    "fog": {1: 90.0, 2: 90.0},
}


def test_means_leave_gaussian_noise_out():
    assert mean_corruption_accuracy(ACCURACIES) == pytest.approx(np.mean([80, 60, 50, 50, 90, 90]))
    assert noise_corruption_accuracy(ACCURACIES) == pytest.approx(60)
    assert mean_corruption_accuracy(ACCURACIES, FAMILIES["weather"]) == 90
    assert noise_corruption_accuracy({"fog": {1: 3.0}}) is None
    assert mean_corruption_accuracy({"gaussian_noise": {1: 3.0}}) is None


def test_the_paper_s_corruptions_are_counted():
    assert [name for name in NAMES if not counts_in_mca(name)] == ["gaussian_noise"]
    assert len(MCA_CORRUPTIONS) == 18
    assert MCA_N_CORRUPTIONS == ("impulse_noise", "shot_noise", "speckle_noise")


def test_only_a_mean_over_all_of_its_corruptions_has_the_name():
    def measured(names):
        return dict.fromkeys(names, SEVERITIES)

    assert name_mean(measured(NAMES)) == name_mean(measured(MCA_CORRUPTIONS)) == "mCA"
    for missing in MCA_CORRUPTIONS:
        rest = measured(name for name in NAMES if name != missing)
        assert name_mean(rest) == "mean over 17 corruptions" and not is_complete(rest)
        assert (name_mean(rest, MCA_N_CORRUPTIONS) == "mCA-N") == (missing not in MCA_N_CORRUPTIONS)
    two = measured(["shot_noise", "fog"])
    assert name_mean(two, MCA_N_CORRUPTIONS) == "mean over shot_noise (1 corruption)"


def test_only_a_mean_over_all_severities_has_the_name():
    part = dict.fromkeys(NAMES, (1, 3, 5))
    assert not is_complete(part) and name_mean(part) == "mean over 18 corruptions at severities 1, 3, 5"
    assert name_mean(part, MCA_N_CORRUPTIONS).endswith("(3 corruptions) at severities 1, 3, 5")
    assert name_mean({"fog": [3]}) == "mean over fog (1 corruption) at severity 3"
    one_less = {**dict.fromkeys(NAMES, SEVERITIES), "fog": (1, 2, 3, 4)}
    assert not is_complete(one_less) and name_mean(one_less) == "mean over 18 corruptions at some severities"
    assert name_mean(one_less, MCA_N_CORRUPTIONS) == "mCA-N"


def test_a_pool_is_the_calibration_of_all_predictions_together():
    def count(confidence, label):
        metric = Calibration()
        metric.update(torch.tensor([[confidence, 1 - confidence]]), torch.tensor([label]))
        return metric

    conditions = {("gaussian_noise", 1): count(0.9, 1), ("shot_noise", 1): count(0.9, 0), ("fog", 1): count(0.9, 1)}
    assert pool(conditions).compute().ece == pytest.approx(40), "|1/2 - 0.9|, not the mean of 10 and 90"
    assert pool(conditions, MCA_N_CORRUPTIONS).compute().ece == pytest.approx(10)
    assert pool({("gaussian_noise", 1): count(0.9, 1)}) is None
    assert conditions["fog", 1].count == 1, "the conditions stay as they were"
