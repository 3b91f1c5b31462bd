"""Quantities read what a run has, say None where it has not, and have one name over all and another over a part."""

import pytest

from dign.report.analysis.quantities import (
    CORRUPTION_MEAN,
    MCA,
    MCA_N,
    NOISE_MEAN,
    conditions_of,
    corruption_accuracy,
    corruption_title,
    noise_text,
    severity_accuracy,
)
from dign.report.load import load_runs


@pytest.fixture(scope="module")
def run(demo_runs):
    return load_runs([demo_runs])[0][0]


def test_titles_are_words():
    assert corruption_title("jpeg_compression") == "JPEG Compression"
    assert noise_text(("impulse_noise", "shot_noise", "speckle_noise")) == "impulse, shot and speckle noise"
    assert noise_text(("shot_noise",)) == "shot noise"


def test_a_place_stands_for_the_conditions_that_were_measured(run):
    assert conditions_of("clean")(run) == [("clean", 0)]
    noise = [(name, level) for name in ("impulse_noise", "shot_noise", "speckle_noise") for level in range(1, 6)]
    assert conditions_of("noise")(run) == noise and ("gaussian_noise", 1) not in conditions_of("all")(run)
    assert conditions_of("c-bar")(run) == []


def test_a_mean_over_a_part_is_another_quantity(run):
    """The demonstration is measured under all noises, and under no other corruption."""
    accuracies = [run.results.corruptions[name].accuracy for name in ("impulse_noise", "shot_noise", "speckle_noise")]
    assert MCA_N.read(run) == pytest.approx(sum(accuracies) / 3)
    assert [quantity.read(run) for quantity in (NOISE_MEAN, MCA, CORRUPTION_MEAN)] == [None, None, None]


def test_severities_of_a_corruption_have_its_mean(run):
    levels = [severity_accuracy(level, ("shot_noise",), "shot noise").read(run) for level in range(1, 6)]
    assert corruption_accuracy("shot_noise").read(run) == pytest.approx(sum(levels) / 5)
    assert severity_accuracy(0, ("shot_noise",), "").read(run) == run.results.clean.accuracy
    assert corruption_accuracy("fog").read(run) is None and severity_accuracy(1, ("fog",), "fog").read(run) is None
