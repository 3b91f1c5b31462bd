"""Scores and bins of a file: written as they are read, refused with the reason where they make no sense."""

import pytest
import torch

from dign.evaluation.json_values import BrokenResults
from dign.evaluation.result_scores import bins_to_json, read_bins, read_scores, scores_to_json
from dign.metrics import Calibration

SCORES = {"count": 4, "accuracy": 75.0, "ece": 5.0, "rmse": 6.0, "oe": 1.0, "sharpness": None}
BINS = {"counts": [0, 4], "correct": [0, 3], "deviation": [0.0, 0.1], "square": [0.0, 0.01]}


def test_what_is_written_is_read():
    metric = Calibration(4)
    metric.update(torch.tensor([[0.9, 0.1], [0.3, 0.7]]), torch.tensor([0, 0]))
    assert read_bins(bins_to_json(metric), "clean") == metric
    scores = metric.compute()
    assert read_scores(scores_to_json(scores), "clean") == scores


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"ece": "high"}, "clean: ece is not a percentage"),
        ({"ece": 10**400}, "ece"),
        ({"ece": float("nan")}, "ece"),
        ({"sharpness": "x"}, "sharpness"),
        ({"count": -1}, "count"),
    ],
)
def test_scores_that_make_no_sense(change, reason):
    with pytest.raises(BrokenResults, match=reason):
        read_scores({**SCORES, **change}, "clean")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"counts": [4]}, "one length"),
        ({"counts": [-1, 4]}, "not a number"),
        ({"correct": [1, 3]}, "do not add up"),
        ({"counts": [0, 0], "correct": [0, 0]}, "do not add up"),
        ({"square": None}, "four lists"),
    ],
)
def test_bins_that_make_no_sense(change, reason):
    with pytest.raises(BrokenResults, match=reason):
        read_bins({**BINS, **change}, "clean")
