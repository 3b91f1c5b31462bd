"""Promises are counted image by image, and what is counted adds up."""

import pytest
import torch

from dign.evaluation.json_values import BrokenResults
from dign.evaluation.promises import Promises, PromiseScores
from dign.runs.calibrator import HeldOut

PROMISES = Promises(100, 0.05, 0.8, 0.9, {"threshold": 0.75, "adaptive": 0.95})
P = torch.tensor([[0.9, 0.06, 0.04], [0.5, 0.3, 0.2], [0.85, 0.1, 0.05]])
LABELS = torch.tensor([0, 1, 1])


def test_counts_by_hand():
    scores = PromiseScores.of(PROMISES, PROMISES.count(P, LABELS))
    assert scores.answered == pytest.approx(200 / 3) and scores.error == pytest.approx(50), "the third is wrong"
    assert scores.coverage["threshold"] == pytest.approx(200 / 3), "p >= 0.25: {0}, {0, 1}, {0}"
    assert scores.size["threshold"] == pytest.approx(4 / 3)
    assert scores.coverage["adaptive"] == pytest.approx(100) and scores.size["adaptive"] == pytest.approx(8 / 3)


def test_batches_add_up():
    parts = PROMISES.count(P[:1], LABELS[:1]) + PROMISES.count(P[1:], LABELS[1:])
    assert torch.equal(parts, PROMISES.count(P, LABELS))


def test_what_cannot_be_promised_answers_nothing():
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.softmax(torch.randn(30, 3, generator=generator), 1)
    promises = Promises.of(HeldOut.of(probabilities, torch.randint(3, (30,), generator=generator)))
    assert promises.threshold is None
    scores = PromiseScores.of(promises, promises.count(P, LABELS))
    assert scores.answered is None and scores.error is None
    assert PromiseScores.from_json(scores.to_json(), "x") == scores
    assert PromiseScores.pool([scores, scores]).answered is None


def test_the_error_of_several_conditions_is_that_of_all_their_answers():
    """Half of the images with one answer of ten wrong, and a tenth of them with half wrong: 10 of 60 answers."""
    sets = {"coverage": {"adaptive": 90.0}, "size": {"adaptive": 1.0}}
    none = PromiseScores(0.0, None, **sets)
    pooled = PromiseScores.pool([PromiseScores(50.0, 10.0, **sets), PromiseScores(10.0, 50.0, **sets), none])
    assert (pooled.answered, pooled.error) == (pytest.approx(20), pytest.approx(100 * 10 / 60))


def test_survives_json_and_nothing_else_does():
    assert Promises.from_json(PROMISES.to_json()) == PROMISES
    scores = PromiseScores.of(PROMISES, PROMISES.count(P, LABELS))
    assert PromiseScores.from_json(scores.to_json(), "x") == scores
    for damaged in ({}, {**scores.to_json(), "answered": "many"}, {**scores.to_json(), "size": {}}):
        with pytest.raises(BrokenResults):
            PromiseScores.from_json(damaged, "x")
    with pytest.raises(BrokenResults):
        Promises.from_json({**PROMISES.to_json(), "quantiles": {}})
