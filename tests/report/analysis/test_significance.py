"""The paired t-test against SciPy, and Holm's correction by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from dign.report.analysis.image_tests import ImageDifference
from dign.report.analysis.significance import Difference, compare, critical_value, holm, two_sided_p
from dign.report.analysis.study import Statistic


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 9, 30])
@pytest.mark.parametrize("t", [0.0, 0.3, -1.0, 2.0, 4.3, 31.0])
def test_student_t_agrees_with_scipy(t, freedom):
    assert two_sided_p(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), abs=1e-12)


@pytest.mark.parametrize("freedom", [1, 2, 7])
def test_critical_value_agrees_with_scipy(freedom):
    assert critical_value(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), rel=1e-9)


def test_compare_is_the_paired_t_test():
    first, second = {0: 90.1, 1: 91.0, 2: 90.4, 3: 92.0}, {0: 88.0, 1: 90.5, 2: 89.0, 3: 90.1, 9: 10.0}
    result = compare(Statistic(first), Statistic(second))
    expected = stats.ttest_rel([first[s] for s in range(4)], [second[s] for s in range(4)])
    assert result.seeds == 4 and result.p == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval()
    assert result.mean - result.half_width == pytest.approx(interval.low)


def test_two_seeds_are_too_few_and_equal_results_are_no_difference():
    few = compare(Statistic({0: 1.0, 1: 2.0}), Statistic({0: 0.0, 1: 0.0}))
    assert few.p is None and few.verdict == "too few seeds" and few.mean == 1.5
    same = Statistic({0: 1.0, 1: 2.0, 2: 3.0})
    assert compare(same, same).p == 1.0
    shifted = Statistic({seed: value + 1 for seed, value in same.by_seed.items()})
    assert compare(shifted, same).p == 0.25, "the sign test of three seeds, not 0"
    assert compare(shifted, same).half_width is None
    over_images = replace(compare(shifted, same), images=ImageDifference(1.0, 0.1, 500))
    assert over_images.half_width is None, "images alone would make the interval narrower than p = 0.25 allows"


def test_errors_over_seeds_and_images_add_up_by_hand():
    """3 and 4 make 5; degrees of freedom by Welch and Satterthwaite: 2 (5/3)^4 = 15.4."""
    both = Difference(12.0, 3, p_seeds=two_sided_p(4.0, 2), seed_error=3.0, images=ImageDifference(12.0, 4.0, 500))
    over_seeds, together = 2 * stats.t.sf(4.0, 2), 2 * stats.t.sf(12 / 5, 15)
    assert over_seeds > together and both.p == pytest.approx(over_seeds)
    assert both.half_width == pytest.approx(3 * stats.t.ppf(0.975, 2))
    many = replace(both, seeds=8, p_seeds=two_sided_p(4.0, 7))
    assert many.p == pytest.approx(2 * stats.t.sf(12 / 5, 54)), "7 (5/3)^4 = 54.01"
    assert many.half_width == pytest.approx(5 * stats.t.ppf(0.975, 54))


@pytest.mark.parametrize("seeds", [3, 8])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
def test_luck_of_seeds_and_of_images_decides_in_five_cases_of_a_hundred(seeds, ratio):
    """The error over images, the same for all seeds, is `ratio` times that over seeds; no difference at all."""
    generator = np.random.default_rng(0)
    wrong = 0
    for _ in range(1000):
        luck = ratio / math.sqrt(seeds)
        by_seed = dict(enumerate(generator.normal(size=seeds) + luck * generator.normal()))
        plain = compare(Statistic(by_seed), Statistic(dict.fromkeys(by_seed, 0.0)))
        wrong += replace(plain, images=ImageDifference(plain.mean, luck, 500)).decided
    assert wrong <= 50 + 14, "5 % of 1000, and two standard deviations"


def test_holm_by_hand():
    # sorted: .01*3, .02*2, .04*1, and never smaller than the one before
    assert holm([0.04, None, 0.01, 0.02]) == pytest.approx([0.04, None, 0.03, 0.04], nan_ok=True)
    assert holm([0.9, 0.8]) == [1.0, 1.0] and holm([]) == []
    assert math.isclose(holm([0.03])[0], 0.03)


def test_with_few_seeds_in_common_the_difference_is_over_those():
    few = compare(Statistic({0: 90.0, 1: 80.0, 2: 70.0}), Statistic({0: 91.0}))
    assert (few.mean, few.seeds, few.p) == (-1.0, 1, None)
    none = compare(Statistic({0: 90.0, 1: 80.0}), Statistic({2: 80.0}))
    assert (none.mean, none.seeds, none.p, none.verdict) == (5.0, 0, None, "no seeds in common")
