import math

import pytest
import torch

from dign.methods.attacks import cross_entropy_of
from dign.methods.labels import MixedLabels, cross_entropy, mix_labels, mix_with_partners


@pytest.fixture
def logits():
    return torch.randn(6, 5, generator=torch.Generator().manual_seed(0))


def mixed(y):
    return mix_with_partners(y, torch.tensor([0.0, 0.1, 0.3, 0.5, 0.9, 1.0]))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_cross_entropy_of_mixed_labels_is_that_of_their_probabilities(logits, y, smoothing):
    """Against torch's, which takes class probabilities: the mixture written out as rows that add up to one."""
    labels = mixed(y)
    rows = torch.zeros(6, 5)
    for image in range(6):
        for label, share in zip(labels.classes[image].tolist(), labels.shares[image].tolist(), strict=True):
            rows[image, label] += share
    assert torch.allclose(rows.sum(1), torch.ones(6))
    expected = torch.nn.functional.cross_entropy(logits, rows, label_smoothing=smoothing)
    torch.testing.assert_close(cross_entropy(logits, labels, label_smoothing=smoothing), expected)


def test_mixed_labels_whose_share_is_one_are_plain_labels(logits, y):
    labels = mix_labels(y, y.flip(0), torch.ones(6))
    for reduction in ("mean", "none"):
        plain, same = (cross_entropy(logits, each, reduction=reduction) for each in (y, labels))
        torch.testing.assert_close(plain, same)
    torch.testing.assert_close(cross_entropy_of(labels)(logits), cross_entropy_of(y)(logits))


def test_mixtures_of_mixtures_keep_every_class_and_add_up_to_one(y):
    twice = mix_with_partners(mixed(y), torch.full((6,), 0.25))
    assert twice.classes.shape == (6, 4) and twice.shape == y.shape
    assert twice.shares.sum(1).tolist() == pytest.approx([1] * 6)
    assert twice.classes[1].tolist() == [1, 4, 4, 1]
    assert twice.shares[1].tolist() == pytest.approx([0.25 * 0.1, 0.25 * 0.9, 0.75 * 0.9, 0.75 * 0.1])


def test_equal_logits_cost_the_logarithm_of_the_classes(y):
    assert cross_entropy(torch.zeros(6, 5), mixed(y)).item() == pytest.approx(math.log(5))
    assert isinstance(mixed(y).flatten(), MixedLabels)
