"""Learning rates over time, worked out by hand."""

import pytest

from dign.training.schedule import learning_rate


def test_the_paper_schedule_drops_at_epochs_50_and_100():
    rates = [learning_rate("step", 0.1, epoch, 150) for epoch in (0, 49, 50, 99, 100, 149)]
    assert rates == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_one_cycle_goes_up_then_down_and_cosine_down():
    cycle = [learning_rate("one-cycle", 1.0, step, 100, warmup=0.2) for step in range(100)]
    assert cycle.index(max(cycle)) in (19, 20) and cycle[0] > 0 and cycle[-1] > 0
    assert cycle[10] == pytest.approx(10.5 / 20) and cycle[60] == pytest.approx(39.5 / 80)
    cosine = [learning_rate("cosine", 1.0, step, 10) for step in range(10)]
    assert cosine == sorted(cosine, reverse=True) and sum(cosine) == pytest.approx(5)
