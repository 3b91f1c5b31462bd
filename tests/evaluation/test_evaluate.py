"""Evaluation: what it measures, that it repeats itself, and that batches do not matter."""

import base64
import io
import json
from functools import partial

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dign.cli.evaluate import summary_line
from dign.core.errors import UserError
from dign.corruptions import corrupt, write_benchmark
from dign.data.dataset import Split
from dign.evaluation.evaluate import (
    Conditions,
    _fit_temperature,
    benchmark_for,
    chosen_corruptions,
    evaluate,
    evaluate_run,
)
from dign.methods import RSE
from dign.metrics import Calibration
from dign.parallel.team import Team
from dign.runs.config import RunConfig
from dign.training.loop import train

NOISE = Conditions(corruptions=chosen_corruptions(["noise"]), severities=(1, 5), profile="imagenet")


@pytest.fixture(scope="module")
def split():
    generator = torch.Generator().manual_seed(0)
    return Split(
        torch.randint(256, (90, 3, 8, 8), dtype=torch.uint8, generator=generator),
        torch.randint(4, (90,), generator=generator),
    )


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 4))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = RunConfig.from_mapping({"data": "digits", "size": 8, "epochs": 1, "method": "rse", "batch_size": 256})
    return train(config, tmp_path_factory.mktemp("evaluate") / "run", quiet=True)


def test_counts_equal_a_plain_computation(model, split):
    measured = evaluate(model, split, NOISE, batch_size=90)
    for name in NOISE.corruptions:
        for severity in NOISE.severities:
            noisy = corrupt(split.images, name, severity, profile="imagenet", seed=0).float() / 255
            expected = (model(noisy).argmax(1) == split.labels).float().mean().item() * 100
            assert measured["corruptions"][name]["severities"][str(severity)]["accuracy"] == pytest.approx(expected)
    clean = (model(split.images.float() / 255).argmax(1) == split.labels).float().mean().item() * 100
    assert measured["summary"]["clean_accuracy"] == pytest.approx(clean)


def test_the_batch_size_does_not_matter(model, split):
    whole, pieces = evaluate(model, split, NOISE, batch_size=90), evaluate(model, split, NOISE, batch_size=7)
    assert whole["summary"]["mca_n"] == pieces["summary"]["mca_n"]
    for name in NOISE.corruptions:
        counts = [part["corruptions"][name]["severities"]["5"]["bins"]["correct"] for part in (whole, pieces)]
        assert counts[0] == counts[1]


def test_the_seed_matters(model, split):
    other = Conditions(corruptions=NOISE.corruptions, severities=(5,), profile="imagenet", seed=1)
    bins = [
        evaluate(model, split, conditions)["corruptions"]["shot_noise"]["severities"]["5"]["bins"]["deviation"]
        for conditions in (NOISE, other)
    ]
    assert bins[0] != bins[1]


def test_calibration_is_pooled_over_conditions_without_gaussian_noise(model, split):
    measured = evaluate(model, split, NOISE)
    pool = Calibration()
    for name in ("shot_noise", "impulse_noise", "speckle_noise"):
        for condition in measured["corruptions"][name]["severities"].values():
            pool.merge(Calibration.from_state(condition["bins"]))
    assert measured["summary"]["calibration"]["noise"] == pool.compute().as_dict()
    assert pool.compute().count == 3 * 2 * 90


def test_a_model_is_left_as_it_was(split):
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(192), nn.Dropout(), nn.Linear(192, 4)).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    evaluate(model, split, NOISE)
    assert all(module.training for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_function_of_images_can_be_evaluated(split):
    certain = lambda x, generator: torch.eye(4)[torch.zeros(len(x), dtype=torch.long)]  # noqa: E731
    measured = evaluate(certain, split, NOISE)
    share = (split.labels == 0).float().mean().item() * 100
    assert measured["summary"]["clean_accuracy"] == pytest.approx(share)
    assert measured["summary"]["mca_n"] == pytest.approx(share)
    assert measured["clean"]["ece"] == pytest.approx(100 - share)


def test_progress_counts_every_prediction(model, split):
    seen = []
    evaluate(model, split, NOISE, batch_size=40, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (90 * 9, 90 * 9)


def test_a_run_is_evaluated_with_its_own_way_to_predict(run):
    """RSE averages ten noisy predictions: its clean result differs from the bare model's, and repeats itself."""
    results = evaluate_run(run, NOISE, device="cpu")
    assert json.loads((run.path / "results.json").read_text()) == results
    assert results["run"]["method"] == "rse" and results["evaluation"]["images"] == len(run.data().test)
    bare = evaluate(run.model(), run.data().test, NOISE)
    assert bare["clean"]["bins"] != results["clean"]["bins"]
    again = evaluate_run(run, NOISE, device="cpu")
    assert again["clean"] == results["clean"] and again["corruptions"] == results["corruptions"]


def test_wrong_conditions_are_named():
    with pytest.raises(UserError, match="Did you mean 'fog'"):
        Conditions(corruptions=("fogg",))
    with pytest.raises(UserError, match="1 to 5"):
        Conditions(severities=(6,))
    with pytest.raises(UserError, match="Did you mean 'weather'"):
        chosen_corruptions(["wether"])
    assert chosen_corruptions(["noise", "fog", "shot_noise"])[-1] == "fog"


def test_a_benchmark_folder_gives_the_results_of_corruptions_made_on_the_fly(run, tmp_path):
    test = run.data().test
    how = {"classes": run.classes, "names": ("fog", "shot_noise"), "severities": (1, 5), "profile": "imagenet"}
    write_benchmark(test.images, test.labels, tmp_path / "digits-c", **how)
    benchmark = benchmark_for(run, tmp_path / "digits-c", (), (1, 5))
    fly = Conditions(corruptions=("shot_noise", "fog"), severities=(1, 5), profile="imagenet")
    stored, made = evaluate_run(run, benchmark, device="cpu"), evaluate_run(run, fly, device="cpu")
    assert stored["corruptions"] == made["corruptions"] and stored["summary"] == made["summary"]
    assert stored["evaluation"]["benchmark"] == "digits-c" and made["evaluation"]["benchmark"] is None


def test_a_benchmark_of_another_data_set_is_refused(run, tmp_path):
    test = run.data().test
    how = {"classes": run.classes, "names": ("fog",), "severities": (1,)}
    write_benchmark(test.images, test.labels.flip(0), tmp_path / "other", **how)
    with pytest.raises(UserError, match="another data set"):
        benchmark_for(run, tmp_path / "other", (), (1,))
    write_benchmark(test.images.repeat(1, 1, 2, 2), test.labels, tmp_path / "larger", **how)
    with pytest.raises(UserError, match=r"\(16, 16\) pixels"):
        benchmark_for(run, tmp_path / "larger", (), (1,))


def test_examples_show_what_the_model_saw_and_said(run):
    evaluate_run(run, NOISE, device="cpu")
    entries = json.loads((run.path / "examples.json").read_text())["images"]
    assert len(entries) == 3 * 5 and {entry["corruption"] for entry in entries} == {"clean", *NOISE.corruptions}
    test = run.data().test
    for entry in entries:
        shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(entry["png"])))).transpose(2, 0, 1)
        expected = test.images[entry["index"]]
        if entry["severity"]:
            expected = corrupt(
                expected[None], entry["corruption"], entry["severity"], profile="imagenet", first=entry["index"]
            )[0]
        assert np.array_equal(shown, expected.numpy())
        assert entry["label"] == run.classes[test.labels[entry["index"]]]
        assert 0 < entry["confidence"] <= 100 and entry["prediction"] in run.classes


def test_a_temperature_is_fitted_on_validation_and_shown_beside_the_rest(run):
    plain = evaluate_run(run, NOISE, device="cpu")
    results = evaluate_run(run, NOISE, device="cpu", temperature=True)
    assert "temperature" not in plain and results["summary"] == plain["summary"], "the uncalibrated figures stay"
    scaled = results["temperature"]
    assert scaled["split"] == "validation" and scaled["images"] == len(run.data().validation)
    assert scaled["nll"]["after"] <= scaled["nll"]["before"]
    for part in ("clean", "noise", "all"):
        before = plain["summary"]["calibration"][part]
        assert scaled[part]["accuracy"] == before["accuracy"] and scaled[part]["ece"] != before["ece"]
    with pytest.raises(UserError, match="evaluate another one"):
        evaluate_run(run, NOISE, device="cpu", temperature=True, split="validation")


def test_the_batch_size_does_not_matter_to_the_temperature_of_a_method_that_draws_noise(model, split):
    predict, device = partial(RSE(sigma=0.3).predict, model), torch.device("cpu")
    whole, pieces = (_fit_temperature(predict, split, device, size, Team()) for size in (90, 7))
    assert whole.value == pytest.approx(pieces.value, rel=1e-4)


def test_the_batch_size_does_not_matter_to_a_method_that_draws_noise(model, split):
    predict = partial(RSE(sigma=0.3).predict, model)
    whole, pieces = (evaluate(predict, split, NOISE, batch_size=size) for size in (90, 7))
    for name in NOISE.corruptions:
        bins = [part["corruptions"][name]["severities"]["5"]["bins"] for part in (whole, pieces)]
        assert bins[0]["correct"] == bins[1]["correct"] and bins[0]["counts"] == bins[1]["counts"]


def test_what_was_asked_for_is_told_where_no_mean_counts_it(run):
    results = evaluate_run(run, Conditions(corruptions=("gaussian_noise",), severities=(1, 3)), device="cpu")
    levels = results["corruptions"]["gaussian_noise"]["severities"].values()
    mean = sum(level["accuracy"] for level in levels) / 2
    assert f"{mean:.1f} % under gaussian_noise" in summary_line("a", results)


def test_a_run_that_cannot_be_written_to_is_refused_before_it_is_measured(run, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setattr("dign.evaluation.evaluate.results_of", lambda *a, **k: pytest.fail("it was measured"))
    with pytest.raises(UserError, match="No permission to write results"):
        evaluate_run(run, NOISE, device="cpu")
