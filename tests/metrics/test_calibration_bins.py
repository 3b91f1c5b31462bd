"""Calibration against hand-worked numbers, an independent slow computation, and torchmetrics where it is right."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dign.core.errors import UserError
from dign.metrics import Calibration
from dign.metrics.calibration_bins import calibration


def slow_scores(confidences, corrects, bins=16):
    """The definitions of the paper, image by image, in plain Python."""
    members = [[] for _ in range(bins)]
    for confidence, correct in zip(confidences, corrects, strict=True):
        for index in range(bins):
            if index / bins < confidence <= (index + 1) / bins:
                members[index].append((confidence, correct))
    n = len(confidences)
    ece = rmse = oe = variance = 0.0
    for inside in members:
        if inside:
            weight = len(inside) / n
            confidence = math.fsum(c for c, _ in inside) / len(inside)
            accuracy = sum(k for _, k in inside) / len(inside)
            ece += weight * abs(accuracy - confidence)
            rmse += weight * (accuracy - confidence) ** 2
            oe += weight * confidence * max(confidence - accuracy, 0)
            variance += weight * math.fsum((c - confidence) ** 2 for c, _ in inside) / len(inside)
    return {
        "accuracy": 100 * sum(corrects) / n,
        "ece": 100 * ece,
        "rmse": 100 * math.sqrt(rmse),
        "oe": 100 * oe,
        "sharpness": 1 / math.sqrt(variance) if variance > 0 else None,
    }


def batch(seed=0, n=400, classes=5):
    generator = torch.Generator().manual_seed(seed)
    probabilities = torch.softmax(3 * torch.randn(n, classes, generator=generator, dtype=torch.float64), dim=1)
    return probabilities, torch.randint(classes, (n,), generator=generator)


def test_two_predictions_by_hand():
    # confidences 0.9 (right) and 0.6 (wrong): |1-.9|/2 + |0-.6|/2 = .35; sqrt((.01+.36)/2); .6*.6/2
    scores = calibration(torch.tensor([[0.9, 0.1], [0.4, 0.6]], dtype=torch.float64), torch.tensor([0, 0]))
    assert scores.accuracy == 50
    assert scores.ece == pytest.approx(35)
    assert scores.rmse == pytest.approx(100 * math.sqrt(0.185))
    assert scores.oe == pytest.approx(18)
    assert scores.sharpness is None


def test_sharpness_of_confidences_spread_evenly_inside_bins_is_16_sqrt_12():
    confidence = (torch.arange(160_000, dtype=torch.float64) + 0.5) / 160_000
    probabilities = torch.stack([confidence, 1 - confidence], dim=1)
    calibration = Calibration(16)
    calibration.update(probabilities.max(1, keepdim=True).values.repeat(1, 2), torch.zeros(160_000, dtype=torch.long))
    assert calibration.compute().sharpness == pytest.approx(16 * math.sqrt(12), rel=1e-4)  # 55.4 in the paper


def test_bins_are_right_closed_and_the_last_one_takes_one():
    calibration = Calibration(16)
    edges = torch.arange(1, 17, dtype=torch.float64) / 16
    calibration.update(edges[:, None].repeat(1, 2), torch.zeros(16, dtype=torch.long))
    assert calibration.reliability()["count"] == [1] * 16


@pytest.mark.parametrize("bins", [1, 10, 16])
def test_equals_the_slow_computation(bins):
    probabilities, labels = batch()
    confidence, predicted = probabilities.max(1)
    expected = slow_scores(confidence.tolist(), (predicted == labels).tolist(), bins)
    got = calibration(probabilities, labels, bins)
    for name, value in expected.items():
        assert getattr(got, name) == pytest.approx(value, rel=1e-9), name


tricky = st.one_of(
    st.floats(1e-300, 1.0), st.integers(1, 16).map(lambda k: k / 16), st.sampled_from([1e-320, 0.5, 1 - 1e-16, 1.0])
)
"""Confidences anywhere, on the edges of bins, and next to them."""


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(tricky, st.booleans()), min_size=1, max_size=40), st.sampled_from([1, 10, 16]), st.data())
def test_any_confidences_equal_the_slow_computation_however_they_are_cut_and_ordered(predictions, bins, data):
    """The confidence stands in the first column, and again in the second: 0 is predicted, and is right where the label
    is 0."""
    order = data.draw(st.permutations(predictions))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(order)), max_size=4)))
    merged = Calibration(bins)
    for first, last in zip([0, *cuts], [*cuts, len(order)], strict=True):
        part = Calibration(bins)
        confidences = torch.tensor([confidence for confidence, _ in order[first:last]], dtype=torch.float64)
        labels = torch.tensor([0 if right else 1 for _, right in order[first:last]], dtype=torch.long)
        part.update(confidences[:, None].repeat(1, 2), labels)
        merged.merge(part)
    expected = slow_scores(*zip(*predictions, strict=True), bins)
    got = merged.compute()
    for name in ("accuracy", "ece", "rmse", "oe"):
        assert getattr(got, name) == pytest.approx(expected[name], rel=1e-9, abs=1e-9), name


def test_agrees_with_torchmetrics_on_ece_and_rmse():
    from torchmetrics.functional.classification import multiclass_calibration_error

    probabilities, labels = batch(seed=3)
    got = calibration(probabilities, labels)
    for norm, value in (("l1", got.ece), ("l2", got.rmse)):
        theirs = multiclass_calibration_error(probabilities.float(), labels, 5, n_bins=16, norm=norm)
        assert value == pytest.approx(100 * theirs.item(), rel=1e-4)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 60), st.integers(0, 60))
def test_splitting_merging_and_order_do_not_matter(seed, n, cut):
    probabilities, labels = batch(seed, n)
    whole = calibration(probabilities, labels)
    left, right = Calibration(), Calibration()
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    left.update(probabilities[order[:cut]], labels[order[:cut]])
    right.update(probabilities[order[cut:]], labels[order[cut:]])
    merged = Calibration.from_state(right.state()).merge(left).compute()
    assert merged.count == whole.count and merged.accuracy == whole.accuracy
    for name in ("ece", "rmse", "oe"):
        assert getattr(merged, name) == pytest.approx(getattr(whole, name), abs=1e-9)
    if whole.sharpness is None or merged.sharpness is None:
        assert merged.sharpness == whole.sharpness
    else:
        assert merged.sharpness == pytest.approx(whole.sharpness, rel=1e-6)


def test_state_survives_json_exactly():
    metric = Calibration()
    metric.update(*batch())
    lists = {name: values.tolist() for name, values in metric.state().items()}
    again = Calibration.from_state(json.loads(json.dumps(lists)))
    assert again == metric and again.compute() == metric.compute()


def test_a_billion_predictions_keep_their_digits():
    metric = Calibration(16)
    one_million = torch.full((1_000_000, 2), 0.9, dtype=torch.float64)
    one_million[::2] = 0.93
    metric.update(one_million, torch.zeros(1_000_000, dtype=torch.long))
    for _ in range(10):  # doubling: 2^10 million
        metric.merge(Calibration.from_state(metric.state()))
    scores = metric.compute()
    assert scores.count == 1_024_000_000
    assert scores.ece == pytest.approx(100 * (1 - 0.915), rel=1e-9)
    assert scores.sharpness == pytest.approx(1 / 0.015, rel=1e-9)


@pytest.mark.parametrize("confidence", [0.51, 0.7, 0.9, 0.999])
def test_equal_confidences_have_no_sharpness_however_many_they_are(confidence):
    metric = Calibration()
    row = torch.tensor([[confidence, 1 - confidence]], dtype=torch.float64)
    metric.update(row.expand(100_003, 2), torch.zeros(100_003, dtype=torch.long))
    assert metric.compute().sharpness is None


def test_bad_input_is_refused():
    metric = Calibration()
    with pytest.raises(UserError, match="softmax"):
        metric.update(torch.tensor([[3.0, 1.0]]), torch.tensor([0]))
    with pytest.raises(UserError, match="softmax"):
        metric.update(torch.tensor([[float("nan"), 0.0]]), torch.tensor([0]))
    with pytest.raises(UserError, match="labels"):
        metric.update(torch.rand(3, 2), torch.tensor([0]))
    for label in (-1, 2):
        with pytest.raises(UserError, match=r"class indices 0\.\.C-1"):
            metric.update(torch.tensor([[0.9, 0.1]]), torch.tensor([label]))
    with pytest.raises(UserError, match="update"):
        metric.compute()
    with pytest.raises(UserError, match="bins=16 with one of bins=10"):
        metric.merge(Calibration(10))


def test_bins_are_right_closed():
    """0.5 belongs to (0.25, 0.5], and 1 to the last bin."""
    confidences = torch.tensor([0.25, 0.5, 0.500001, 1.0], dtype=torch.float64)
    metric = Calibration(4)
    metric.update(confidences[:, None].repeat(1, 2), torch.zeros(4, dtype=torch.long))
    assert metric.reliability()["count"] == [1, 1, 1, 1]


def test_sums_are_those_of_numpy_to_the_last_bit():
    """One batch is summed in order, as NumPy's bincount does, and batches are added in order."""
    expected = np.zeros(16)
    metric = Calibration()
    for seed in range(5):
        probabilities, labels = batch(seed, 1000)
        confidence = probabilities.max(1).values.numpy()
        index = np.ceil(confidence * 16).astype(int) - 1
        expected = expected + np.bincount(index, confidence - (index + 0.5) / 16, minlength=16)
        metric.update(probabilities, labels)
    assert metric.state()["deviation"].tolist() == expected.tolist()


def test_the_ece_that_chance_gives_a_perfectly_calibrated_model():
    """Simulated: labels drawn with the confidences themselves, 359 images as of the digits."""
    generator = np.random.default_rng(0)
    found, expected = [], []
    for _ in range(100):
        p = torch.tensor(generator.uniform(0.5, 1, 359))
        metric = Calibration()
        metric.update(torch.stack([p, 1 - p], 1), torch.tensor(generator.random(359) > p.numpy()).long())
        found.append(metric.compute().ece)
        expected.append(metric.expected_ece())
    assert np.mean(expected) == pytest.approx(np.mean(found), rel=0.05) and np.mean(found) > 3
