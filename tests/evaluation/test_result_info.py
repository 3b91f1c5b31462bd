"""What untrusted files say about a run is checked and made fit to be shown."""

import json
from pathlib import Path

import pytest

from dign.corruptions import ALL_NAMES
from dign.evaluation.json_values import BrokenResults
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.results import Results

PUBLISHED = Path(__file__).parents[2] / "results" / "allout-cifar10" / "results.json"


def test_text_from_a_file_is_made_fit_to_be_shown(results):
    value = results.to_json()
    value["run"] |= {"title": "Di\x1b[31mGN", "data": "folder:/home/somebody/photos"}
    value["evaluation"]["device"] = "c\npu"
    value["corruptions"]["fo\u202eg"] = value["corruptions"].pop("fog")
    read = Results.from_json(value)
    assert (read.run.title, read.run.data, read.evaluation.device) == ("Di [31mGN", "folder:photos", "c pu")
    assert "fo g" in read.corruptions


def test_entries_are_read_back_as_they_were_and_missing_ones_are_none():
    value = json.loads(PUBLISHED.read_text())["evaluation"]
    assert EvaluationInfo.from_json(value).to_json() == value
    assert EvaluationInfo.from_json({"unknown": 1}) == EvaluationInfo()
    with pytest.raises(BrokenResults, match=r"evaluation\.seconds"):
        EvaluationInfo.from_json({**value, "seconds": "long"})


def test_a_number_of_parameters_that_is_none_is_not_known():
    value = json.loads(PUBLISHED.read_text())["run"]
    assert RunInfo.from_json({**value, "parameters": "many"}).parameters is None


def test_a_long_list_of_earlier_corruptions_is_not_shortened():
    names = ", ".join(ALL_NAMES)
    assert EvaluationInfo.from_json({"earlier": [{"corruptions": names}]}).earlier == ({"corruptions": names},)
