"""Means and pools of a few conditions, worked out by hand."""

import pytest

from dign.evaluation.summarize import CLEAN, choose_confusions, pool_calibration, summarize, tabulate
from dign.metrics import Calibration, Confusion


def count(right, total):
    """Predictions at a confidence of 0.5."""
    return Calibration.from_state({"counts": [total], "correct": [right], "deviation": [0.0], "square": [0.0]})


COUNTS = {
    CLEAN: count(9, 10),
    ("gaussian_noise", 1): count(0, 10),
    ("shot_noise", 1): count(8, 10),
    ("shot_noise", 2): count(2, 40),
    ("fog", 1): count(5, 10),
}


def test_means_weigh_conditions_alike_and_pools_weigh_predictions_alike():
    summary = summarize(COUNTS)
    assert summary.clean_accuracy == 90
    assert summary.mca_n == pytest.approx((80 + 5) / 2)
    assert summary.mca == pytest.approx((80 + 5 + 50) / 3)
    assert summary.families == pytest.approx({"noise": 42.5, "weather": 50})
    assert summary.calibration.noise.accuracy == pytest.approx(20) and summary.calibration.noise.count == 50
    assert summary.calibration.all.accuracy == pytest.approx(25)
    assert summary.calibration.all.ece == pytest.approx(25)


def test_what_was_not_measured_is_none():
    clean = {CLEAN: count(9, 10)}
    summary = summarize(clean)
    assert (summary.mca, summary.mca_n, summary.families) == (None, None, {})
    assert pool_calibration(clean).noise is None and pool_calibration(clean).all is None
    assert not summary.goes_beyond_noise


def test_the_table_has_every_corruption_with_its_family():
    table = tabulate({condition: counts for condition, counts in COUNTS.items() if condition != CLEAN})
    assert {name: result.family for name, result in table.items()} == {
        "gaussian_noise": "noise", "shot_noise": "noise", "fog": "weather",
    }  # fmt: skip
    assert table["shot_noise"].accuracies == {1: 80, 2: 5} and table["shot_noise"].accuracy == 42.5


def test_matrices_that_do_not_fit_the_names_or_are_large_are_left_out():
    counts = {CLEAN: count(3, 4)}
    matrix = {CLEAN: Confusion.from_state({"counts": [[1, 1], [0, 2]]})}
    assert len(choose_confusions(counts, matrix, 2)) == 1
    assert choose_confusions(counts, matrix, 3) == () and choose_confusions(counts, {}, 2) == ()
    large = Confusion(101)
    large.update(large.state()["counts"].float(), large.state()["counts"][0])
    assert choose_confusions({CLEAN: count(1, 101)}, {CLEAN: large}, 101) == ()
