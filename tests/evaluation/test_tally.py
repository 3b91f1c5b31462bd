"""A tally of parts, merged in order, is the tally of the whole."""

import pytest
import torch
from torch.nn import functional

from dign.evaluation.tally import Tally


def test_parts_merge_to_the_whole_in_order():
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.softmax(torch.randn(50, 4, generator=generator), 1)
    labels = torch.randint(4, (50,), generator=generator)
    whole, merged = Tally.of(probabilities, labels, 16), Tally.empty(16)
    for part in (slice(0, 20), slice(20, 50)):
        merged.merge(Tally.of(probabilities[part], labels[part], 16))
    assert merged.calibration == whole.calibration and merged.confidences == whole.confidences
    assert merged.answers.tolist() == probabilities.argmax(1).tolist() and merged.labels.tolist() == labels.tolist()
    assert merged.loss.compute() == pytest.approx(functional.nll_loss(probabilities.log(), labels).item())
    brier = (probabilities - functional.one_hot(labels, 4)).square().sum(1)
    assert torch.allclose(merged.losses[:, 1], brier) and torch.equal(merged.losses, whole.losses)
    assert merged.losses[:, 0].mean().item() == pytest.approx(merged.loss.compute())
    sure = Tally.of(torch.tensor([[1.000001, 0.0]]), torch.tensor([0]), 16)
    assert sure.losses.tolist() == [[0.0, 0.0]], "a probability that is rounded above 1 has no negative loss"
    assert Tally.of(probabilities[:20], labels[:20], 16) != whole
