"""Checks of single values from an untrusted file."""

import pytest

from dign.evaluation.json_values import BrokenResults, as_object, is_count, is_number, is_percentage, is_whole


@pytest.mark.parametrize("value", [True, None, "1", float("nan"), float("inf"), 10**400, [1]])
def test_what_is_not_a_number_that_a_float_can_hold(value):
    assert not is_number(value) and not is_percentage(value)


def test_ranges():
    assert is_number(-1.5) and is_number(3)
    assert is_whole(-3) and not is_whole(3.0) and not is_whole(True) and not is_whole(2**63)
    assert is_count(0) and not is_count(-1)
    assert is_percentage(0) and is_percentage(100.0) and not is_percentage(100.1) and not is_percentage(-0.1)


def test_an_object_is_a_dictionary_or_an_error_that_names_it():
    assert as_object({"a": 1}, "clean") == {"a": 1}
    with pytest.raises(BrokenResults, match="clean is missing or not an object"):
        as_object(None, "clean")
