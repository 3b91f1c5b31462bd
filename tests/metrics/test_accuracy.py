"""Accuracy against torchmetrics."""

import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import Accuracy
from dign.metrics.accuracy import accuracy


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
