"""Parts of a results file that make no sense are refused with the reason."""

import copy

import pytest

from dign.evaluation.json_values import BrokenResults
from dign.evaluation.results import Results


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r: r.update(schema=2), "schema"),
        (lambda r: r.pop("clean"), "clean is missing"),
        (lambda r: r.update(classes={}), "classes is not a list"),
        (lambda r: r["run"].pop("title"), "run.title is missing"),
        (lambda r: r["run"].update(seed="zero"), "run.seed"),
        (lambda r: r["run"].update(seed=True), "run.seed"),
        (lambda r: r["evaluation"].update(images="all"), "evaluation.images"),
        (lambda r: r["evaluation"].update(image_size=[8]), "evaluation.image_size"),
        (lambda r: r["evaluation"].update(versions=[]), "evaluation.versions"),
        (lambda r: r["clean"].update(accuracy=12.0), "does not follow from its bins"),
        (lambda r: r["corruptions"]["fog"].pop("family"), "family is missing"),
        (lambda r: r["corruptions"]["fog"].update(severities={}), "no severities"),
        (lambda r: r["corruptions"]["fog"]["severities"].update({"6": {}}), "not one of 1 to 5"),
        (lambda r: r["summary"].update(mca_n=250), "summary.mca_n"),
        (lambda r: r["summary"].update(clean_accuracy=1.0), "not the accuracy of the clean images"),
        (lambda r: r["summary"].pop("calibration"), "summary.calibration"),
        (lambda r: r["summary"]["calibration"].pop("clean"), "summary.calibration.clean is missing"),
        (lambda r: r["summary"].update(families={"noise": "x"}), "families"),
        (lambda r: r.update(corruptions=[]), "corruptions"),
    ],
)
def test_results_that_make_no_sense_are_refused_with_the_reason(results, change, reason):
    value = copy.deepcopy(results.to_json())
    change(value)
    with pytest.raises(BrokenResults, match=reason):
        Results.from_json(value)


def test_another_number_of_bins_than_clean_is_refused(results):
    value = results.to_json()
    single = {"counts": [10], "correct": [7], "deviation": [0.0], "square": [0.0]}
    value["corruptions"]["fog"]["severities"]["3"]["bins"] = single
    with pytest.raises(BrokenResults, match="another number of bins than clean"):
        Results.from_json(value)
