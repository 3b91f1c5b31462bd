"""Accuracy against torchmetrics."""

import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import Accuracy, BalancedAccuracy, balanced_accuracy
from dign.metrics.accuracies import accuracy


def test_agrees_with_torchmetrics():
    from torchmetrics.functional.classification import multiclass_accuracy

    generator = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(500, 7, generator=generator), torch.randint(7, (500,), generator=generator)
    theirs = multiclass_accuracy(logits, labels, 7, average="micro").item()
    assert accuracy(logits, labels) == pytest.approx(100 * theirs)
    metric = Accuracy()
    for part in range(0, 500, 77):
        metric.update(logits[part : part + 77], labels[part : part + 77])
    assert metric.compute() == accuracy(logits, labels)


def test_nothing_counted_has_no_accuracy():
    with pytest.raises(UserError, match=r"update\(\)"):
        Accuracy().compute()


def test_balanced_accuracy_agrees_with_torchmetrics():
    from torchmetrics.functional.classification import multiclass_accuracy

    generator = torch.Generator().manual_seed(0)
    labels = torch.multinomial(torch.tensor([0.6, 0.3, 0.1, 0.0]), 300, replacement=True, generator=generator)
    logits = torch.randn(300, 4, generator=generator) + 2 * torch.nn.functional.one_hot(labels, 4)
    theirs = multiclass_accuracy(logits, labels, 4, average=None)
    present = labels.bincount(minlength=4) > 0
    assert not present[3]
    assert balanced_accuracy(logits, labels) == pytest.approx(100 * theirs[present].mean().item())


def test_balanced_accuracy_adds_up_over_batches_and_states():
    scores, labels = torch.eye(3)[[0, 0, 1, 2, 0]], torch.tensor([0, 1, 1, 2, 2])
    halves = [BalancedAccuracy(3), BalancedAccuracy(3)]
    halves[0].update(scores[:2], labels[:2])
    halves[1].update(scores[2:], labels[2:])
    restored = BalancedAccuracy.from_state(halves[1].state())
    assert halves[0].merge(restored).compute() == balanced_accuracy(scores, labels) == pytest.approx(200 / 3)


def test_balanced_accuracy_of_nothing_and_of_other_classes_is_refused():
    with pytest.raises(UserError, match=r"update\(\)"):
        BalancedAccuracy(2).compute()
    with pytest.raises(UserError, match="counts 2 classes, but the scores have 3"):
        BalancedAccuracy(2).update(torch.eye(3), torch.arange(3))
