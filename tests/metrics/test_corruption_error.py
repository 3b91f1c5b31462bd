"""mCE and relative mCE by hand."""

import pytest

from dign.metrics.corruption_error import ALEXNET, are_imagenet_classes, corruption_error


def accuracies(errors: dict[str, float]) -> dict[str, dict[int, float]]:
    return {
        name: {severity: 100 - error - (severity - 3) for severity in range(1, 6)} for name, error in errors.items()
    }


def test_half_of_alexnets_errors_are_half_of_its_mce():
    found = corruption_error(accuracies({name: error / 2 for name, error in ALEXNET.items()}), 100 - 43.5 / 2)
    assert found.mce == pytest.approx(50) and found.relative_mce == pytest.approx(50)
    assert found.by_corruption["fog"] == pytest.approx(50) and len(found.by_corruption) == 15


def test_relative_mce_is_about_what_corruption_adds():
    """A model that is never wrong but under one corruption, where it is as wrong as AlexNet."""
    errors = {name: ALEXNET["fog"] if name == "fog" else 0.0 for name in ALEXNET}
    given = {name: dict.fromkeys(range(1, 6), 100 - error) for name, error in errors.items()}
    found = corruption_error(given, 100.0)
    assert found.mce == pytest.approx(100 / 15)
    assert found.relative_mce == pytest.approx(100 * 81.9324 / (81.9324 - 43.5) / 15)


def test_nothing_is_given_for_part_of_the_benchmark():
    whole = accuracies(ALEXNET)
    assert corruption_error({name: whole[name] for name in whole if name != "fog"}, 60.0) is None
    del whole["fog"][5]
    assert corruption_error(whole, 60.0) is None


def test_classes_are_known_by_their_wordnet_ids():
    classes = [f"n{number:08d}" for number in range(1000)]
    assert are_imagenet_classes(classes)
    assert not are_imagenet_classes(classes[:200]) and not are_imagenet_classes([*classes[:999], "tench"])
