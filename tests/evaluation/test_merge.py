"""A later evaluation adds to an earlier one, or is stored beside it; nothing that was measured is lost."""

from dataclasses import replace

import pytest

from dign.evaluation.confusion_result import ConfusionResult
from dign.evaluation.merge import find_differences, merge_results, save_evaluation
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_pools import TemperatureResult
from dign.evaluation.results import Results
from dign.evaluation.summarize import CLEAN, make_results, pool_calibration
from dign.metrics import Calibration


def evaluation(rights, temperature=None, data="digits", **changes):
    """Ten predictions under each condition, as many right as `rights` says; 9 right on clean images."""

    def count(right):
        return Calibration.from_state({"counts": [10], "correct": [right], "deviation": [0.0], "square": [0.0]})

    counts = {CLEAN: count(9)} | {condition: count(right) for condition, right in rights.items()}
    how = {"split": "test", "images": 10, "profile": "cifar", "seed": 0, "bins": 1, "commit": "old", **changes}
    scaled = TemperatureResult(temperature, pool_calibration(counts)) if temperature else None
    return make_results(counts, RunInfo("r", "dign", "DiGN", "m", data), EvaluationInfo(**how), "ab", scaled)


FULL = {("fog", 1): 5, ("fog", 3): 4, ("snow", 1): 8}


def examples(*names):
    return {"images": [{"corruption": name} for name in names]}


def save(folder, results, *names):
    told = []
    return save_evaluation(folder, results, examples(*names), told.append).name, told


def test_conditions_are_merged_and_means_follow(tmp_path):
    assert save(tmp_path, evaluation(FULL), "fog", "snow") == ("results.json", [])
    name, told = save(tmp_path, evaluation({("fog", 3): 6}, commit="new"), "fog")
    merged = Results.load(tmp_path)
    assert name == "results.json" and "Added to the earlier results" in told[0]
    assert merged.corruptions["fog"].accuracies == {1: 50, 3: 60} and merged.corruptions["snow"].accuracies == {1: 80}
    assert merged.mca == pytest.approx((50 + 60 + 80) / 3), "made anew, not of one of the two"
    assert merged.evaluation.commit == "new" and merged.evaluation.earlier == (
        {"corruptions": "fog, snow", "commit": "old"},
    )
    assert '"snow"' in (tmp_path / "examples.json").read_text()
    save(tmp_path, evaluation({("fog", 1): 5, ("fog", 3): 6}, commit="newest"), "fog")
    assert Results.load(tmp_path).evaluation.earlier == ({"corruptions": "snow", "commit": "old"},)
    save(tmp_path, evaluation(FULL, commit="all"), "fog", "snow")
    assert Results.load(tmp_path).evaluation.earlier is None


@pytest.mark.parametrize(
    ("changes", "file"),
    [
        ({"seed": 1}, "results-seed-1.json"),
        ({"split": "validation", "images": 5}, "results-validation.json"),
        ({"benchmark": "CIFAR-10-C"}, "results-CIFAR-10-C.json"),
        ({"images": 12}, "results-other-images.json"),
        ({"data": "folder:new", "left_out": 3}, "results-new.json"),
    ],
)
def test_less_under_other_circumstances_is_stored_beside(tmp_path, changes, file):
    save(tmp_path, evaluation(FULL))
    before = (tmp_path / "results.json").read_bytes()
    part = evaluation({("fog", 1): 1}, **changes)
    name, told = save(tmp_path, part)
    assert name == file and file in told[0] and Results.load(tmp_path / file) == part
    save(tmp_path, evaluation({("fog", 3): 1}, **changes))
    assert set(Results.load(tmp_path / file).corruptions["fog"].severities) == {1, 3}, "and is added to in its turn"
    assert (tmp_path / "results.json").read_bytes() == before


def test_as_much_under_other_circumstances_takes_over_and_the_earlier_one_is_kept(tmp_path):
    save(tmp_path, evaluation(FULL))
    name, told = save(tmp_path, evaluation(FULL, seed=1))
    assert name == "results.json" and Results.load(tmp_path).evaluation.seed == 1
    assert "kept in" in told[0] and Results.load(tmp_path / "results-seed-0.json") == evaluation(FULL)


def test_a_temperature_stays_with_the_conditions_that_it_was_measured_on():
    full, part = evaluation(FULL, temperature=1.5), evaluation({("fog", 1): 5})
    assert merge_results(full, part).temperature == full.temperature
    assert find_differences(evaluation(FULL), replace(part, temperature=full.temperature)) == {"temperature": 1.5}


def test_the_confusion_matrices_are_of_clean_images_and_of_the_worst_of_all_conditions():
    def matrix(name, severity, right):
        return ConfusionResult(name, severity, ((right, 10 - right), (0, 0)))

    clean, fog, snow = matrix("clean", 0, 9), matrix("fog", 3, 4), matrix("snow", 1, 2)
    old, better, worse = evaluation(FULL), evaluation({("fog", 3): 9}), evaluation({("snow", 1): 2})
    old = replace(old, confusion=(clean, fog))
    assert merge_results(old, replace(better, confusion=(clean, matrix("fog", 3, 9)))).confusion == (clean,)
    assert merge_results(old, replace(worse, confusion=(clean, snow))).confusion == (clean, snow)
    milder = replace(evaluation({("snow", 1): 7}), confusion=(clean, matrix("snow", 1, 7)))
    assert merge_results(old, milder).confusion == (clean, fog)


def test_what_a_grid_replaces_is_kept_where_it_has_more(tmp_path):
    """A user has added snow to the results of a run of a grid, whose own conditions are fog alone."""
    fog = {pair: right for pair, right in FULL.items() if pair[0] == "fog"}
    save(tmp_path, evaluation(FULL), "fog", "snow")
    told = []
    save_evaluation(tmp_path, evaluation(fog), examples("fog"), told.append, keep_earlier=False)
    assert set(Results.load(tmp_path).corruptions) == {"fog"}
    assert set(Results.load(tmp_path / "results-more-conditions.json").corruptions) == {"fog", "snow"}
    assert "kept in" in told[0]
    save_evaluation(tmp_path, evaluation(fog), examples("fog"), told.append, keep_earlier=False)
    assert len(told) == 1, "nothing is lost"
