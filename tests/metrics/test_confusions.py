"""The confusion matrix against torchmetrics and a plain loop, and what every metric can do."""

import pickle

import pytest
import torch

from dign.core.errors import UserError
from dign.metrics import Confusion
from dign.metrics.accuracies import accuracy
from dign.metrics.confusions import confusion


def batch(seed, count=20, classes=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, classes, generator=generator), torch.randint(classes, (count,), generator=generator)


def test_agrees_with_torchmetrics_and_with_a_plain_loop():
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    scores, labels = batch(0, 500, 7)
    found = confusion(scores, labels)
    assert torch.equal(found, multiclass_confusion_matrix(scores, labels, 7))
    expected = [[0] * 7 for _ in range(7)]
    for row, label in zip(scores.tolist(), labels.tolist(), strict=True):
        expected[label][row.index(max(row))] += 1
    assert found.tolist() == expected and found.dtype == torch.int64
    assert 100 * int(found.trace()) / 500 == accuracy(scores, labels)


def test_rows_are_the_true_classes():
    assert confusion(torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([1])).tolist() == [[0, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_parts_merge_to_the_whole_by_any_way_of_gathering():
    whole, total = Confusion(4), Confusion(4)
    for seed in range(3):
        whole.update(*batch(seed))
        part = Confusion(4)
        part.update(*batch(seed))
        sent = [part, Confusion.from_state(part.state()), pickle.loads(pickle.dumps(part))][seed]
        assert total.merge(sent) is total
    assert total == whole and torch.equal(total.compute(), whole.compute())
    with pytest.raises(UserError, match="classes=4 with one of classes=5"):
        total.merge(Confusion(5))


def test_reset_forgets_everything_and_a_result_is_a_copy():
    metric = Confusion(4)
    metric.update(*batch(0))
    metric.compute().zero_()
    metric.state()["counts"].zero_()
    assert int(metric.compute().sum()) == 20
    metric.reset()
    assert metric == Confusion(4)
    with pytest.raises(UserError, match=r"update\(\)"):
        metric.compute()


def test_update_does_not_wait_for_the_device():
    """Tensors on the meta device have no values: whatever asks for one fails."""
    metric = Confusion(4).to("meta")
    scores, labels = batch(0)
    metric.update(scores.to("meta"), labels.to("meta"))
    assert {value.device.type for value in metric.state().values()} == {"meta"}


def test_wrong_values_are_refused_and_count_nothing():
    metric = Confusion(4)
    scores, labels = batch(0)
    for wrong in (labels - 4, labels + 4):
        with pytest.raises(UserError, match="class indices"):
            metric.update(scores, wrong)
    with pytest.raises(UserError, match=r"scores \(N,C\) and labels \(N,\)"):
        metric.update(scores[:3], labels)
    with pytest.raises(UserError, match="counts 4 classes, but the scores have 3"):
        metric.update(scores[:, :3], labels)
    with pytest.raises(UserError, match="at least 1"):
        Confusion(0)
    assert metric == Confusion(4)


def test_labels_of_any_integer_type_are_counted():
    scores, labels = batch(0)
    assert torch.equal(confusion(scores, labels.to(torch.uint8)), confusion(scores, labels))
