"""Results files: written and read back exactly, and untrusted."""

import builtins
import json
from dataclasses import replace
from pathlib import Path

import pytest

from dign.core.errors import UserError
from dign.corruptions import SETS
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.result_parts import ConditionResult, CorruptionResult
from dign.evaluation.results import Results
from dign.evaluation.summarize import CLEAN, make_results
from dign.metrics import Calibration
from dign.metrics.corruption_error import ALEXNET

ROOT = Path(__file__).parents[2]


def count(right, total=10):
    """Predictions at a confidence of 0.75."""
    return Calibration.from_state(
        {"counts": [0, total], "correct": [0, right], "deviation": [0.0, 0.0], "square": [0.0, 0.0]}
    )


def test_scores_by_hand(results):
    assert results.clean.accuracy == 90 and results.clean.ece == pytest.approx(15)
    assert results.mca_n == 60 and results.mca == 65, "gaussian_noise is left out"
    assert results.calibration.noise.count == 10 and results.calibration.all.count == 20
    assert results.corruptions["fog"].severities[3].accuracy == 70
    assert results.summary.families == {"noise": 60, "weather": 70}
    assert results.counted == ("shot_noise", "fog") and results.goes_beyond_noise


def test_confusion_is_of_the_clean_images_and_of_the_worst_condition(results):
    clean, worst = results.confusion
    assert (clean.corruption, clean.severity, clean.accuracy_by_class) == ("clean", 0, (80, 100))
    assert (worst.corruption, worst.severity) == ("gaussian_noise", 1), "the lowest accuracy, in mCA or not"
    assert worst.counts == ((0, 5), (4, 1)) and worst.accuracy_by_class == (0, 20)


def test_results_are_shown_as_a_table(results):
    assert str(results) == repr(results) and "mean over shot_noise" in repr(results), "a notebook shows the repr"


def test_a_file_is_read_back_as_it_was(results, tmp_path):
    file = results.save(tmp_path / "mine.json")
    assert Results.load(file) == results
    assert Results.load(file).to_json() == results.to_json() == json.loads(file.read_text())
    assert Results.load(results.save(tmp_path / "folder").parent) == results


FILES = sorted(
    path
    for path in ROOT.glob("results/**/*.json")
    if path.name not in ("calibration.json", "landscape.json", "sensitivity.json", "run.json", "sequences.json")
    and not path.name.startswith("certificates-")
    and path.parent.name != "reliability"
)


def is_same(ours, theirs):
    """Equal, numbers to twelve digits: pools over further sets are summed anew, and the last digit is the CPU's."""
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(is_same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(is_same, ours, theirs))
    return ours == (pytest.approx(theirs, rel=1e-12, abs=0) if isinstance(theirs, float) else theirs)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_published_file_is_read_and_written_as_it_stands(path):
    assert is_same(Results.load(path).to_json(), json.loads(path.read_text()))


def test_a_frame_has_a_row_for_each_condition(results):
    frame = pytest.importorskip("pandas") and results.to_frame()
    assert list(frame.corruption) == ["clean", "gaussian_noise", "shot_noise", "fog"]
    assert frame.set_index("corruption").loc["fog", ["family", "severity", "accuracy"]].tolist() == ["weather", 3, 70]


def test_without_pandas_one_sentence_says_how_to_get_it(results, monkeypatch):
    original = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.partition(".")[0] == "pandas":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UserError, match="pip install pandas"):
        results.to_frame()


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(UserError, match=r"has no results\.json: make it with `dign evaluate"):
        Results.load(tmp_path)
    with pytest.raises(UserError, match="There is no results file"):
        Results.load(tmp_path / "nothing.json")
    (tmp_path / "results.json").write_text("{")
    for path in (tmp_path, tmp_path / "results.json"):
        with pytest.raises(UserError, match="is broken: it cannot be read"):
            Results.load(path)


def test_sets_beyond_the_common_ones_have_scores_of_their_own(results):
    """Ten more corruptions change neither mCA nor the pools; the set's scores are of its own predictions."""
    members = {name: CorruptionResult("c-bar", {1: ConditionResult.of(count(2))}) for name in SETS["c-bar"]}
    assert results.sets == {}
    part = {name: members[name] for name in SETS["c-bar"][1:]}
    assert replace(results, corruptions={**results.corruptions, **part}).sets == {}, "not measured as a whole"
    more = replace(results, corruptions={**results.corruptions, **members})
    assert more.sets["c-bar"].accuracy == pytest.approx(20) and more.sets["c-bar"].count == 100
    assert more.counted == results.counted
    stored = more.to_json()
    assert stored["summary"]["sets"]["c-bar"]["ece"] == pytest.approx(55), "confidence 0.75"
    assert Results.from_json(stored).to_json() == stored
    assert "C-bar (10 corruptions)  20.0" in " ".join(repr(more).split()).replace(") ", ")  ")


def test_corruptions_of_other_sets_are_no_part_of_the_means():
    counts = {CLEAN: count(9), ("fog", 1): count(7), ("ripple", 1): count(1)}
    results = make_results(counts, RunInfo("r", "dign", "DiGN", "m", "d"), EvaluationInfo(bins=2), ["a", "b"])
    assert results.mca == 70 and results.calibration.all.count == 10 and results.summary.families == {"weather": 70}
    assert results.corruptions["ripple"].family == "c-bar"


def test_models_of_imagenet_have_an_mce():
    counts = {CLEAN: count(8)} | {(name, severity): count(5) for name in ALEXNET for severity in range(1, 6)}
    how = EvaluationInfo(bins=2, jpeg_quality=85)
    run, classes = RunInfo("r", "external", "R", "m", "imagenet"), [f"n{number:08d}" for number in range(1000)]
    results = make_results(counts, run, how, classes)
    assert results.imagenet_c.mce == pytest.approx(sum(5000 / error for error in ALEXNET.values()) / 15)
    assert "relative mCE" in repr(results) and results.to_json()["summary"]["imagenet_c"]["mce"] < 100
    assert Results.from_json(results.to_json()).to_json() == results.to_json()
    assert make_results(counts, run, how, classes[:200]).imagenet_c is None, "other classes"
    assert make_results(counts, run, EvaluationInfo(bins=2), classes).imagenet_c is None, "not JPEG"
