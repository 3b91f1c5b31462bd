"""Ranges of axes: everything is inside, and small differences look small."""

import random

import pytest

from dign.report.scales import accuracy_range, error_range, widen


def test_a_difference_of_one_point_takes_a_twentieth_of_the_axis_at_most():
    low, high = accuracy_range([98.0, 99.0])
    assert (99.0 - 98.0) / (high - low) <= 1 / 20
    low, high = error_range([0.2, 0.4])
    assert (low, high) == (0.0, 5.0)


@pytest.mark.parametrize("seed", range(10))
def test_every_value_is_inside(seed):
    draws = random.Random(seed)
    values = [draws.uniform(0, 100) for _ in range(draws.randint(1, 6))]
    for low, high in (accuracy_range(values), error_range(values), widen(values, 10.0)):
        assert low <= min(values) and max(values) <= high and high - low >= 5.0 - 1e-9
    low, high = widen(values, 10.0)
    assert low >= 0.0 and high <= 100.0 and high - low >= 10.0 - 1e-9


def test_nothing_measured_has_a_range_too():
    assert accuracy_range([]) == (0.0, 100.0) and error_range([]) == (0.0, 5.0)
