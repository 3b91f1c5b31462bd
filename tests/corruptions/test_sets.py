"""The sets of corruptions, and what their members are given."""

import pytest

from dign.core.errors import UserError
from dign.corruptions import ALL_NAMES, NAMES, SETS, SEVERITIES, family_of
from dign.corruptions.engine import CORRUPTIONS
from dign.corruptions.sets import DESCRIPTIONS, TITLES, corruptions_of, get_parameters
from dign.corruptions.settings import get_parameters as get_common_parameters


def test_every_set_has_a_title_and_a_description_and_every_name_a_corruption():
    assert set(SETS) == set(DESCRIPTIONS) == set(TITLES)
    assert set(ALL_NAMES) == set(CORRUPTIONS) and len(ALL_NAMES) == len(set(ALL_NAMES))
    assert SETS["c"] == NAMES and len(SETS["c-bar"]) == len(SETS["imagenet-c-bar"]) == 10
    assert len({*SETS["c-bar"], *SETS["imagenet-c-bar"]}) == 15


def test_the_published_severities():
    """Of Mintun et al.'s two benchmarks; small images have CIFAR's, large ones ImageNet's."""
    assert [get_parameters("lines", s, "cifar") for s in SEVERITIES] == [0.5, 1.0, 1.5, 2.0, 2.5]
    assert [get_parameters("sparkles", s, "imagenet") for s in SEVERITIES] == [1, 2, 3, 5, 6]
    assert get_parameters("sparkles", 5, "tiny-imagenet") == get_parameters("sparkles", 5, "cifar") == 7.0
    assert get_parameters("pinch_and_twirl", 5, "cifar") == (10.0, 3)
    assert get_parameters("pinch_and_twirl", 5, "imagenet") == (10.0, 5)
    assert get_parameters("fog", 3, "cifar") == get_common_parameters("fog", 3, "cifar")


def test_between_64_and_224_pixels_levels_lie_between_those_of_the_two_benchmarks():
    assert get_parameters("sparkles", 5, "32-64", 50) == get_parameters("sparkles", 5, "64-224", 64) == 7.0
    assert get_parameters("sparkles", 5, "64-224") == 6.5 and get_parameters("sparkles", 5, "64-224", 224) == 6
    assert get_parameters("pinch_and_twirl", 1, "64-224") == (pytest.approx((5.5 + 4.15) / 2), 4)
    assert get_parameters("iso_noise", 1, "64-224") == get_parameters("iso_noise", 1, "cifar")


def test_every_severity_has_a_setting():
    for name in ALL_NAMES:
        for profile in ("cifar", "tiny-imagenet", "imagenet"):
            settings = [get_parameters(name, severity, profile) for severity in SEVERITIES]
            assert all(setting is not None for setting in settings)
            if name not in NAMES and isinstance(settings[0], float):
                assert settings in (sorted(settings), sorted(settings, reverse=True))


def test_families_of_further_corruptions_are_their_sets():
    assert {family_of(name) for name in (*SETS["c-bar"], *SETS["imagenet-c-bar"])} == {"c-bar"}


def test_unknown_names_list_the_known_ones():
    with pytest.raises(UserError, match=r"Did you mean 'c-bar'.* Known: c, c-bar, imagenet-c-bar, sensors"):
        corruptions_of("c-baz")
    with pytest.raises(UserError, match="Did you mean 'ripple'"):
        family_of("riple")
    with pytest.raises(UserError, match="invalid severity 6"):
        get_parameters("ripple", 6, "cifar")
    with pytest.raises(UserError, match="Unknown corruption profile"):
        get_parameters("ripple", 1, "cifar100")
