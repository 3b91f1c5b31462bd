"""What `dign evaluate` says of one model, in a line and as JSON."""

import pytest

from dign.cli.evaluation_outcome import describe_outcome, summary_line
from dign.corruptions import SETS, SEVERITIES
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_pools import TemperatureResult
from dign.evaluation.summarize import CLEAN, make_results, pool_calibration
from dign.metrics import Calibration
from dign.metrics.aggregation import MCA_CORRUPTIONS


def results_of(*conditions, temperature=None):
    """Ten predictions under each condition, all at a confidence of 0.5, as many right as the condition says."""

    def count(right):
        return Calibration.from_state({"counts": [10], "correct": [right], "deviation": [0.0], "square": [0.0]})

    counts = {CLEAN: count(9)} | {(name, severity): count(right) for name, severity, right in conditions}
    scaled = TemperatureResult(temperature, pool_calibration(counts), images=5) if temperature else None
    return make_results(counts, RunInfo("a", "dign", "DiGN", "tinynet", "digits"), EvaluationInfo(), "ab", scaled)


def test_the_line_says_what_was_measured_and_no_more():
    assert summary_line("a", results_of()) == "a: accuracy 90.0 % clean; calibration error 40.0 % clean (ECE)"
    assert summary_line("a", results_of(("shot_noise", 1, 6))) == (
        "a: accuracy 90.0 % clean, 60.0 % mean over shot_noise (1 corruption) at severity 1; "
        "calibration error 10.0 % under noise (ECE)"
    )
    noises = [(f"{name}_noise", severity, 6) for name in ("shot", "impulse", "speckle") for severity in SEVERITIES]
    assert summary_line("a", results_of(*noises)) == (
        "a: accuracy 90.0 % clean, 60.0 % under noise (mCA-N); calibration error 10.0 % under noise (ECE-N)"
    )
    assert summary_line("a", results_of(("fog", 1, 7), temperature=1.5)) == (
        "a: accuracy 90.0 % clean, 70.0 % mean over fog (1 corruption) at severity 1; calibration error 40.0 % clean "
        "(ECE), 40.0 % at temperature 1.50 (fitted on 5 images)"
    )
    two = results_of(("fog", 1, 7), ("snow", 1, 3))
    assert "50.0 % mean over fog, snow (2 corruptions) at severity 1;" in summary_line("a", two)
    everything = results_of(*((name, severity, 7) for name in MCA_CORRUPTIONS for severity in SEVERITIES))
    assert "70.0 % under all corruptions (mCA);" in summary_line("a", everything)
    almost = results_of(*((name, severity, 7) for name in MCA_CORRUPTIONS[1:] for severity in SEVERITIES))
    assert "70.0 % mean over 17 corruptions;" in summary_line("a", almost)
    mild = results_of(*((name, 1, 7) for name in MCA_CORRUPTIONS))
    assert "70.0 % mean over 18 corruptions at severity 1;" in summary_line("a", mild)


def test_gaussian_noise_is_told_where_no_mean_counts_it():
    alone = results_of(("gaussian_noise", 1, 8), ("gaussian_noise", 3, 6))
    assert "70.0 % under gaussian_noise" in summary_line("a", alone)
    assert "gaussian" not in summary_line("a", results_of(("gaussian_noise", 1, 8), ("fog", 1, 6)))


def test_other_sets_have_means_of_their_own():
    measured = [("shot_noise", 1, 6), *((name, 1, 4) for name in SETS["c-bar"]), ("plasma_noise", 1, 2)]
    assert summary_line("a", results_of(*measured)) == (
        "a: accuracy 90.0 % clean, 60.0 % mean over shot_noise (1 corruption) at severity 1, 40.0 % under C-bar, "
        "20.0 % under plasma_noise; calibration error 10.0 % under noise (ECE)"
    )


def test_json_calls_a_mean_over_part_of_the_corruptions_by_another_name():
    document = describe_outcome("a", results_of(("fog", 1, 7), ("shot_noise", 1, 5))).entry
    assert document["mca"] is None and document["mca_n"] is None
    assert document["means_over_part"] == {
        "mean over shot_noise (1 corruption) at severity 1": 50.0,
        "mean over fog, shot_noise (2 corruptions) at severity 1": 60.0,
    }
    everything = results_of(*((name, severity, 7) for name in MCA_CORRUPTIONS for severity in SEVERITIES))
    document = describe_outcome("a", everything).entry
    assert document["mca"] == pytest.approx(70) and "means_over_part" not in document
