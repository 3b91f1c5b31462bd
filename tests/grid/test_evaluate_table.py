"""The [evaluate] table of a grid: what is measured, and which results are those."""

import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import write_benchmark
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.summarize import CLEAN, make_results
from dign.grid.evaluate_table import Evaluation
from dign.metrics import Calibration


def make_fake_results(how, names, severities):
    """Results of one prediction under each condition."""
    one = Calibration.from_state({"counts": [1], "correct": [1], "deviation": [0.0], "square": [0.0]})
    counts = {CLEAN: one} | {(name, severity): one for name in names for severity in severities}
    return make_results(counts, RunInfo("a", "dign", "DiGN", "resnet18", "cifar10"), how, ["a", "b"])


def test_values_of_an_evaluation_may_come_as_text():
    evaluation = Evaluation.from_mapping({"temperature": "no", "batch_size": "100", "seed": "3"})
    assert (evaluation.temperature, evaluation.batch_size, evaluation.seed) == (False, 100, 3)


def test_results_of_part_of_a_benchmark_are_not_taken_for_all_of_it(tmp_path):
    images, labels = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    folder = tmp_path / "some-c"
    write_benchmark(images, labels, folder, classes=("a", "b"), names=("fog", "contrast"))

    def results(names, severities):
        return make_fake_results(EvaluationInfo(split="test", benchmark="some-c"), names, severities)

    whole = Evaluation.from_mapping({"benchmark": str(folder)})
    assert whole.describes(results(["fog", "contrast"], range(1, 6)))
    assert not whole.describes(results(["fog"], range(1, 6)))
    assert not whole.describes(results(["fog", "contrast"], [3]))
    assert not whole.describes(results([], []))
    folder.rename(tmp_path / "elsewhere")
    assert whole.describes(results(["fog"], range(1, 6))), "nobody knows any more what there was"


def test_a_benchmark_is_looked_at_before_anything_is_trained(tmp_path):
    images, labels = torch.zeros(2, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    folder = tmp_path / "some-c"
    write_benchmark(images, labels, folder, classes=("a", "b"), names=("fog",), severities=(1, 3))
    whole = Evaluation.from_mapping({"benchmark": str(folder)})
    whole.check_benchmark()
    assert whole.severity == (1, 3), "as `dign evaluate --benchmark`: all that it holds"
    wrong = {"severity": 5}, {"only": "snow"}, {"benchmark": str(tmp_path / "some-d")}
    for changes in wrong:
        with pytest.raises(UserError, match=r"some-[cd]"):
            Evaluation.from_mapping({"benchmark": str(folder), **changes}).check_benchmark()
    for changes in ({"split": "train"}, {"profile": "cifar"}, {"seed": 1}):
        with pytest.raises(UserError, match="drop"):
            Evaluation.from_mapping({"benchmark": str(folder), **changes})


def test_results_by_another_severity_table_are_not_those_of_the_grid():
    def results(profile):
        how = EvaluationInfo(split="test", seed=0, profile=profile, image_size=(32, 32))
        return make_fake_results(how, ["fog"], [1])

    evaluation = Evaluation.from_mapping({"only": "fog", "severity": 1})
    assert evaluation.describes(results("cifar")) and not evaluation.describes(results("imagenet"))
    asked = Evaluation.from_mapping({"only": "fog", "severity": 1, "profile": "imagenet", "jpeg": "none"})
    assert asked.describes(results("imagenet")) and not asked.describes(results("cifar"))


def test_results_of_part_of_the_images_are_not_those_of_all():
    def results(limit):
        how = EvaluationInfo(split="test", seed=0, profile="cifar", image_size=(32, 32), images=10, limit=limit)
        return make_fake_results(how, ["fog"], [1])

    everything, part = (Evaluation.from_mapping({"only": "fog", "severity": 1, "images": n}) for n in (None, 10))
    assert everything.describes(results(None)) and not everything.describes(results(10))
    assert part.describes(results(10)) and not part.describes(results(None))
    with pytest.raises(UserError, match="images must be at least 1, not 0"):
        Evaluation.from_mapping({"images": 0})


def test_results_without_the_jpeg_step_are_not_those_of_a_grid_that_has_it():
    def results(quality):
        how = EvaluationInfo(split="test", seed=0, profile="tiny-imagenet", image_size=(64, 64), jpeg_quality=quality)
        return make_fake_results(how, ["fog"], [1])

    published = Evaluation.from_mapping({"only": "fog", "severity": 1})
    assert published.describes(results(85)) and not published.describes(results(None))
    plain = Evaluation.from_mapping({"only": "fog", "severity": 1, "jpeg": "none"})
    assert plain.describes(results(None)) and not plain.describes(results(85))
    with pytest.raises(UserError, match="from 1 to 100"):
        Evaluation.from_mapping({"jpeg": 101})


def test_results_in_another_precision_are_not_those_of_the_grid():
    def results(precision):
        how = EvaluationInfo(split="test", seed=0, profile="cifar", image_size=(32, 32), precision=precision)
        return make_fake_results(how, ["fog"], [1])

    exact, mixed = (Evaluation.from_mapping({"only": "fog", "severity": 1, "precision": p}) for p in ("32", "bf16"))
    assert exact.describes(results("32")) and not exact.describes(results("bf16"))
    assert mixed.describes(results("bf16")) and not mixed.describes(results("32"))
    assert EvaluationInfo.from_json({}).precision == "32", "what files that do not say were measured in"
    with pytest.raises(UserError, match="Unknown precision '64'"):
        Evaluation.from_mapping({"precision": "64"})
