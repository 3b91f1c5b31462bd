"""Corruptions and severities as users name them, and benchmarks that must fit the data."""

import pytest

from dign.core.errors import UserError
from dign.corruptions import NAMES, SETS, write_benchmark
from dign.evaluation.conditions import Conditions, benchmark_for, choose_corruptions, parse_severities

pytestmark = pytest.mark.slow


def test_wrong_conditions_are_named():
    with pytest.raises(UserError, match=r"corruptions must be a list of names, e\.g\. \['fog'\], not 'snow'"):
        Conditions(corruptions="snow")
    with pytest.raises(UserError, match=r"severities must be a list, e\.g\. \[1, 3\], not 3"):
        Conditions(severities=3)
    with pytest.raises(UserError, match="'blur' is a family: name its corruptions, defocus_blur, "):
        Conditions(corruptions=["blur"])
    with pytest.raises(UserError, match="Did you mean 'fog'"):
        Conditions(corruptions=("fogg",))
    with pytest.raises(UserError, match="1 to 5"):
        Conditions(severities=(6,))
    with pytest.raises(UserError, match="Did you mean 'cifar'"):
        Conditions(profile="cifra")


def test_families_and_names_stand_for_corruptions():
    assert choose_corruptions(["noise", "fog", "shot_noise"])[-1] == "fog"
    assert choose_corruptions([]) == NAMES
    with pytest.raises(UserError, match="Did you mean 'weather'"):
        choose_corruptions(["wether"])


@pytest.mark.parametrize("text", ["x", "0", "6", "1-6", "", "3-1", "1,,2", "-1", "1-9999999999"])
def test_what_is_not_a_severity_is_refused_with_an_example(text):
    with pytest.raises(UserError, match=r"expected 1-5, e\.g\. 3, 1-5 or 1,3-5"):
        parse_severities(text)


def test_what_is_named_twice_is_measured_once():
    joined = Conditions([*SETS["c-bar"], *SETS["imagenet-c-bar"]], (3, 3))
    assert set(SETS["c-bar"]) & set(SETS["imagenet-c-bar"])
    assert len(joined.pairs) == len({*SETS["c-bar"], *SETS["imagenet-c-bar"]}) == len(joined.corruptions)


def test_severities_are_sorted_and_counted_once():
    assert parse_severities("5,1-3,2") == (1, 2, 3, 5)


def test_a_benchmark_of_another_data_set_is_refused(run, tmp_path):
    test = run.data().test
    how = {"classes": run.classes, "names": ("fog",), "severities": (1,)}
    write_benchmark(test.images, test.labels.flip(0), tmp_path / "other", **how)
    with pytest.raises(UserError, match="another data set"):
        benchmark_for(run.data(), tmp_path / "other", (), (1,))
    write_benchmark(test.images.repeat(1, 1, 2, 2), test.labels, tmp_path / "larger", **how)
    with pytest.raises(UserError, match=r"\(16, 16\) pixels"):
        benchmark_for(run.data(), tmp_path / "larger", (), (1,))
