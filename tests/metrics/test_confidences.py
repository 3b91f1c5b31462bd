"""Confidences that are the same cannot be told apart, so the order of the data does not matter."""

import pytest
import torch

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
