"""Confidences that are the same cannot be told apart, so the order of the data does not matter."""

import math

import pytest
import torch

from dign import metrics
from dign.core.errors import UserError
from dign.metrics.calibration_errors import AdaptiveECE
from dign.metrics.confidences import rank_by_confidence


def test_ties_share_what_is_right_and_the_order_of_the_data_does_not_matter():
    confidence = torch.tensor([0.5, 0.9, 0.5, 0.5, 0.9])
    correct = torch.tensor([True, False, False, True, True])
    ordered, right = rank_by_confidence(confidence, correct)
    assert ordered.tolist() == pytest.approx([0.9, 0.9, 0.5, 0.5, 0.5])
    assert right.tolist() == pytest.approx([1 / 2, 1 / 2, 2 / 3, 2 / 3, 2 / 3])
    order = torch.tensor([4, 2, 0, 3, 1])
    assert rank_by_confidence(confidence[order], correct[order])[1].tolist() == right.tolist()


def test_logits_are_refused():
    with pytest.raises(UserError, match="apply softmax"):
        AdaptiveECE().update(torch.tensor([[3.0, -1.0]]), torch.tensor([0]))
    with pytest.raises(UserError, match="apply softmax"):
        AdaptiveECE().update(torch.tensor([[float("nan"), 0.5]]), torch.tensor([0]))


NAMES = (
    "nll",
    "brier",
    "adaptive_ece",
    "classwise_ece",
    "debiased_rmse",
    "smooth_ece",
    "aurc",
    "augrc",
    "auroc",
    "fpr95",
)


@pytest.mark.parametrize("name", [*NAMES, "aupr", "accuracy_at_coverage"])
@pytest.mark.parametrize(
    ("probabilities", "labels", "message"),
    [
        ([[1.0, -0.5], [0.6, 0.4]], [0, 1], "numbers in .0,1"),
        ([[math.nan, 0.5], [0.6, 0.4]], [0, 1], "numbers in .0,1"),
        ([[3.0, -2.0], [0.6, 4.0]], [0, 1], "numbers in .0,1"),
        ([[1, 0], [0, 1]], [0, 1], "floating-point scores"),
        ([[0.7, 0.3], [0.4, 0.6]], [0.0, 1.5], "whole-numbered labels"),
        ([[0.7, 0.3], [0.4, 0.6]], [0, 2], "class indices"),
        ([[], []], [0, 0], "takes scores"),
        ([0.7, 0.3], [0, 0], "takes scores"),
    ],
)
def test_what_is_not_probabilities_and_labels_is_refused_in_a_sentence(name, probabilities, labels, message):
    with pytest.raises(UserError, match=message):
        getattr(metrics, name)(torch.tensor(probabilities), torch.tensor(labels))


@pytest.mark.parametrize("name", NAMES)
def test_functions_take_arrays_too(name):
    probabilities, labels = torch.tensor([[0.7, 0.3], [0.4, 0.6], [0.9, 0.1]]), torch.tensor([0, 0, 0])
    function = getattr(metrics, name)
    assert function(probabilities.numpy(), labels.numpy()) == function(probabilities, labels)


def test_classes_take_tensors_alone():
    with pytest.raises(UserError, match="takes tensors, not list and list"):
        metrics.NLL().update([[0.5, 0.5]], [0])
