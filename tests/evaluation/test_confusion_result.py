"""Confusion matrices in a results file: accuracy per class, and what is refused."""

import copy

import pytest

from dign.evaluation.confusion_result import ConfusionResult
from dign.evaluation.json_values import BrokenResults
from dign.evaluation.results import Results


def test_a_class_without_images_has_no_accuracy():
    matrix = ConfusionResult("fog", 3, ((1, 3), (0, 0)))
    assert matrix.accuracy_by_class == (25, None)


def set_count(row, column, value):
    def change(file):
        file["confusion"][0]["counts"][row][column] = value

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.update(confusion={}), "not a list"),
        (lambda r: r["confusion"].append(r["confusion"][0]), "at most 2"),
        (lambda r: r.update(confusion=[r["confusion"][0]] * 2), "two matrices of one condition"),
        (lambda r: r["confusion"].__setitem__(0, 7), r"confusion\[0\] is missing or not an object"),
        (lambda r: r["confusion"][1].pop("severity"), "names no condition"),
        (lambda r: r["confusion"][1].update(corruption=["fog"]), "names no condition"),
        (lambda r: r["confusion"][1].update(severity=4), "which was not measured"),
        (lambda r: r["confusion"][1].pop("counts"), "a row for each"),
        (lambda r: r["confusion"][1]["counts"].pop(), "a row for each"),
        (lambda r: r.update(classes=["a"]), "a row for each"),
        (lambda r: r["confusion"][1]["counts"][1].pop(), "not square"),
        (lambda r: r["confusion"][1]["counts"].__setitem__(0, 3), "not square"),
        (set_count(0, 1, -1), "not a whole number"),
        (set_count(0, 1, 1.0), "not a whole number"),
        (set_count(0, 1, True), "not a whole number"),
        (set_count(0, 1, 10**30), "not a whole number"),
        (set_count(0, 1, 2), "do not add up to the images"),
        (lambda r: r["confusion"][0].update(counts=[[3, 2], [0, 5]]), "diagonal does not add up"),
    ],
)
def test_matrices_that_make_no_sense_are_refused_with_the_reason(results, change, reason):
    value = copy.deepcopy(results.to_json())
    change(value)
    with pytest.raises(BrokenResults, match=reason):
        Results.from_json(value)


def test_a_file_without_matrices_has_none(results):
    value = results.to_json()
    del value["confusion"]
    assert Results.from_json(value).confusion == () and Results.from_json(value).to_json() == value


def test_very_many_classes_are_refused(results):
    value = results.to_json()
    value["classes"] = [str(index) for index in range(101)]
    value["confusion"] = [{"corruption": "clean", "severity": 0, "counts": [[0] * 101] * 101}]
    with pytest.raises(BrokenResults, match="1 to 100 classes"):
        Results.from_json(value)
