"""Values are converted and checked, and an error names the parameter."""

import pytest

from dign.core.checks import check_at_least, check_fraction, check_integer, check_tables, coerce, find_invalid_facts
from dign.core.errors import UserError

FACTS = {"classes": ["cat", "dog"], "image_size": [8, 8], "mean": [0.5] * 3, "std": [0.25] * 3}


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("3", int, 3),
        (3, float, 3.0),
        ("1e-3", float, 0.001),
        ("yes", bool, True),
        ("off", bool, False),
        ("none", int | None, None),
        ("2", int | None, 2),
        ("1,2", tuple[int, ...], (1, 2)),
        ([1, 2], tuple[float, ...], (1.0, 2.0)),
        ("text", str, "text"),
    ],
)
def test_text_from_a_command_line_and_plain_values_are_converted(value, kind, expected):
    found = coerce(value, kind, "x")
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "kind", "wanted"),
    [
        (True, int, "a whole number"),
        (1.5, int, "a whole number"),
        ("1.5", int, "a whole number"),
        (True, float, "a number"),
        ("many", float, "a number"),
        ("maybe", bool, "true or false"),
        (3, str, "text"),
        (3, tuple[int, ...], "a list"),
    ],
)
def test_a_value_of_another_type_is_an_error_that_names_the_parameter(value, kind, wanted):
    with pytest.raises(UserError, match=f"epochs must be {wanted}, not {value!r}"):
        coerce(value, kind, "epochs")


@pytest.mark.parametrize("value", [0, 1.0, True, "1", None])
def test_an_integer_is_checked_by_type_and_size(value):
    check_integer(1, count=1)
    with pytest.raises(UserError, match="count must be a whole number of at least 1"):
        check_integer(1, count=value)


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), True, "1"])
def test_a_number_is_finite_and_at_least_the_minimum(value):
    check_at_least(0, sigma=0, weight=0.5)
    with pytest.raises(UserError, match="weight must be a number of at least 0"):
        check_at_least(0, sigma=0, weight=value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("classes", ["one"]),
        ("classes", ["a", "\ud800"]),
        ("image_size", [8, 0]),
        ("image_size", [8, 5000]),
        ("image_size", [8.0, 8]),
        ("mean", [0.5, 0.5]),
        ("mean", [0.5, 0.5, float("nan")]),
        ("std", [0.25, 0.25, 0]),
    ],
)
def test_invalid_facts_about_a_data_set_are_found(name, value):
    assert find_invalid_facts(FACTS) == []
    assert find_invalid_facts({**FACTS, name: value}) == [name]
    assert find_invalid_facts({key: fact for key, fact in FACTS.items() if key != name}) == [name]


def test_a_fraction_is_at_most_one():
    check_fraction(probability=1, share=0.0)
    for value in (1.01, -0.1, float("nan"), True):
        with pytest.raises(UserError, match="share must be a"):
            check_fraction(share=value)


def test_settings_must_be_tables():
    check_tables({"dign": {"weight": 1}})
    for settings in (5, {"dign": 5}):
        with pytest.raises(UserError, match="a table for each method"):
            check_tables(settings)
