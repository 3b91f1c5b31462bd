"""Runs are evaluated as their method predicts, and batches do not matter."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dign.core.errors import UserError
from dign.corruptions import write_benchmark
from dign.data.dataset import Split
from dign.evaluation.conditions import Conditions, benchmark_for
from dign.evaluation.evaluate import evaluate
from dign.evaluation.predictors import predict_by_logits
from dign.evaluation.result_info import RunInfo
from dign.evaluation.results import Results
from dign.evaluation.subjects import Subject, evaluate_run, evaluate_subject, fit_split_temperature, limit_split
from dign.methods import RSE
from dign.runs.foreign.onnx_files import OnnxNetwork


@pytest.mark.slow
def test_a_run_is_evaluated_with_its_own_way_to_predict(run, noise):
    """RSE averages ten noisy predictions: its clean result differs from the bare model's, and repeats itself."""
    results = evaluate_run(run, noise, device="cpu")
    assert Results.load(run.path) == results
    assert json.loads((run.path / "results.json").read_text()) == results.to_json()
    assert results.run.method == "rse" and results.evaluation.images == len(run.data().test)
    bare = evaluate(run.model(), run.data().test, noise)
    assert bare.clean.calibration != results.clean.calibration
    again = evaluate_run(run, noise, device="cpu")
    assert again.clean == results.clean and again.corruptions == results.corruptions


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["npy", "folders"])
def test_a_benchmark_folder_gives_the_results_of_corruptions_made_on_the_fly(run, tmp_path, layout):
    """Of profile imagenet, whose images went through JPEG in either case."""
    test = run.data().test
    how = {"classes": run.classes, "names": ("fog", "shot_noise"), "severities": (1, 5), "profile": "imagenet"}
    how["layout"] = layout
    write_benchmark(test.images, test.labels, tmp_path / "digits-c", **how)
    benchmark = benchmark_for(run.data(), tmp_path / "digits-c", (), (1, 5))
    fly = Conditions(corruptions=("shot_noise", "fog"), severities=(1, 5), profile="imagenet")
    stored, made = evaluate_run(run, benchmark, device="cpu"), evaluate_run(run, fly, device="cpu")
    assert stored.evaluation.jpeg_quality == made.evaluation.jpeg_quality == 85
    if layout == "npy":
        assert stored.corruptions == made.corruptions and stored.summary == made.summary
    for name, corruption in made.corruptions.items():
        for (
            severity,
            accuracy,
        ) in corruption.accuracies.items():  # files are in the order of classes: other predictions' noise
            assert abs(stored.corruptions[name].accuracies[severity] - accuracy) < 6
    assert stored.evaluation.benchmark == "digits-c" and made.evaluation.benchmark is None


@pytest.mark.slow
def test_a_temperature_is_fitted_on_validation_and_shown_beside_the_rest(run, noise):
    plain = evaluate_run(run, noise, device="cpu")
    results = evaluate_run(run, noise, device="cpu", temperature=True)
    assert plain.temperature is None and results.summary == plain.summary, "the uncalibrated figures stay"
    scaled = results.temperature
    assert scaled.split == "validation" and scaled.images == len(run.data().validation)
    assert scaled.nll["after"] <= scaled.nll["before"]
    for part in ("clean", "noise", "all"):
        before, after = getattr(plain.calibration, part), getattr(scaled.calibration, part)
        assert after.accuracy == before.accuracy and after.ece != before.ece
    with pytest.raises(UserError, match="evaluate another split"):
        evaluate_run(run, noise, device="cpu", temperature=True, split="validation")


def test_the_batch_size_does_not_matter_to_the_temperature_of_a_method_that_draws_noise(model, split):
    predict, device = partial(RSE(sigma=0.3).predict, model), torch.device("cpu")
    whole, pieces = (fit_split_temperature(predict, split, device, size) for size in (90, 7))
    assert whole.value == pytest.approx(pieces.value, rel=1e-4)


def test_a_run_that_cannot_be_written_to_is_refused_before_it_is_measured(run, noise, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr("dign.evaluation.subjects.evaluate_subject", lambda *a, **k: pytest.fail("it was measured"))
    with pytest.raises(UserError, match="No permission to write results"):
        evaluate_run(run, noise, device="cpu")


def test_part_of_a_split_is_spread_evenly_over_it(run, noise):
    data = run.data()
    part = limit_split(data, "test", 10).test
    chosen = [index * len(data.test) // 10 for index in range(10)]
    assert torch.equal(part.images, data.test.images[chosen]) and torch.equal(part.labels, data.test.labels[chosen])
    assert limit_split(data, "test", None) is data and limit_split(data, "test", 10**6) is data
    results = evaluate_run(run, noise, device="cpu", images=10, keep_earlier=False)
    assert results.clean.count == results.evaluation.images == results.evaluation.limit == 10
    assert Results.load(run.path).evaluation.limit == 10


@pytest.mark.slow
def test_an_evaluation_in_bfloat16_says_so_and_is_kept_apart(run, noise):
    for file in run.path.glob("results*.json"):  # of other tests
        file.unlink()
    exact = evaluate_run(run, noise, device="cpu")
    mixed = evaluate_run(run, noise, device="cpu", precision="bf16")
    assert (exact.evaluation.precision, mixed.evaluation.precision) == ("32", "bf16")
    assert abs(exact.clean.accuracy - mixed.clean.accuracy) < 3
    assert exact.clean.calibration != mixed.clean.calibration
    assert Results.load(run.path) == mixed, "the newer of two that measured as much"
    assert Results.load(run.path / "results-precision-32.json") == exact


def test_a_temperature_is_held_near_1_where_few_images_speak(model, split):
    """All of nine are right: the log loss alone would want the end of the range, 0.05."""
    nine = Split(split.images[:9], model(split.images[:9] / 255).argmax(1))
    fit = fit_split_temperature(partial(predict_by_logits, model), nine, torch.device("cpu"), 4)
    assert 0.5 < fit.value < 1


def test_an_onnx_file_has_a_precision_of_its_own(run, noise):
    class Session:
        def get_inputs(self):
            return [SimpleNamespace(name="images", type="tensor(float)", shape=[None, 3, 8, 8])]

        def get_outputs(self):
            return [SimpleNamespace(name="logits")]

        def run(self, outputs, inputs):
            return [np.zeros((len(inputs["images"]), 10), np.float32)]

    network, data = OnnxNetwork(Session()), run.data()
    subject = Subject(network, lambda *given: pytest.fail("it predicts"), RunInfo("a", "b", "c", "d", "e"))
    with pytest.raises(UserError, match="An ONNX file computes in a precision of its own"):
        evaluate_subject(subject, data, noise, device="cpu", precision="bf16")
    with pytest.raises(UserError, match="An ONNX file computes in a precision of its own"):
        evaluate(network, data, noise, precision="bf16")
