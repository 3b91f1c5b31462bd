"""A stored calibrator comes back as it was, and a damaged one is refused with a sentence."""

import json
from dataclasses import replace

import pytest
import torch

from dign.core.errors import UserError
from dign.metrics.histogram_binning import fit_histogram_binning
from dign.metrics.vector_scaling import VectorScaling
from dign.runs.calibrator import (
    CALIBRATION_FILE,
    Calibrator,
    HeldOut,
    is_same_transform,
    read_calibrator,
    write_calibrator,
)


def held_out(n=203):
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.softmax(2 * torch.randn(n, 3, generator=generator), 1)
    return HeldOut.of(probabilities, torch.multinomial(probabilities, 1, generator=generator)[:, 0])


def transforms():
    scores = torch.randn(50, 3, generator=torch.Generator().manual_seed(1))
    return {
        "temperature": 0.64,
        "vector": VectorScaling((1.0, 2.0, 0.5), (0.1, 0.0, -0.2)),
        "histogram": fit_histogram_binning(scores, torch.arange(50) % 3),
    }


@pytest.mark.parametrize("kind", ["temperature", "vector", "histogram"])
def test_what_is_stored_comes_back(kind, tmp_path):
    calibrator = Calibrator(kind, transforms()[kind], "digits", 203, "both", 0.5, 0.4, held_out())
    write_calibrator(tmp_path, calibrator)
    again = read_calibrator(tmp_path, 3)
    scores = torch.randn(7, 3, generator=torch.Generator().manual_seed(2))
    assert torch.equal(again(scores), calibrator(scores))
    assert again.transform == calibrator.transform and again.describe() == calibrator.describe()
    assert torch.equal(again.held_out.confidence, calibrator.held_out.confidence)
    assert torch.equal(again.held_out.correct, calibrator.held_out.correct)
    assert torch.equal(again.held_out.scores["adaptive"], calibrator.held_out.scores["adaptive"])
    probabilities = again.calibrate(scores.softmax(1))
    torch.testing.assert_close(probabilities, again(scores).softmax(1))
    assert probabilities.sum(1).tolist() == pytest.approx([1.0] * 7)


def test_transforms_are_the_same_but_for_rounding():
    vector, binning = transforms()["vector"], transforms()["histogram"]
    near = VectorScaling((1.0, 2.0 + 1e-6, 0.5), (0.1, 1e-12, -0.2))
    assert is_same_transform(0.64, 0.64 * (1 + 9e-7)) and not is_same_transform(0.64, 0.64 * (1 + 2e-6))
    assert is_same_transform(vector, near) and not is_same_transform(vector, VectorScaling((1, 2, 0.5), (0.1, 0, -0.3)))
    assert is_same_transform(binning, binning) and not is_same_transform(binning, vector)


def test_numbers_are_kept_only_of_a_calibrator_of_the_same_images():
    new = Calibrator("temperature", 0.64 + 3e-8, "digits", 203, "clean", 0.5, 0.4, held_out())
    same, other = (Calibrator("temperature", 0.64, data, 203, "clean", 0.5, 0.4) for data in ("digits", "more"))
    assert new.keep_numbers(same).temperature == 0.64 and new.keep_numbers(same).held_out is new.held_out
    assert new.keep_numbers(other) is new
    recorded = replace(same, held_out=held_out())
    assert new.keep_numbers(recorded) is recorded, "its promises too, and its losses"


def test_no_file_is_no_calibrator(tmp_path):
    assert read_calibrator(tmp_path, 3) is None


def change(value, key, new):
    return {**value, key: new}


DAMAGES = [
    lambda v: [], lambda v: change(v, "kind", "magic"), lambda v: change(v, "temperature", -1.0),
    lambda v: change(v, "temperature", "hot"), lambda v: change(v, "images", None), lambda v: change(v, "nll", {}),
    lambda v: change(v, "held_out", {"images": 10**12}), lambda v: change(v, "held_out", {"images": 3}),
    lambda v: change(v, "kind", "vector"), lambda v: change(v, "kind", "histogram"), lambda v: change(v, "on", "fog"),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=range(len(DAMAGES)))
def test_a_damaged_file_is_named(damage, tmp_path):
    good = Calibrator("temperature", 0.64, "digits", 203, "clean", 0.5, 0.4, held_out()).to_json()
    (tmp_path / CALIBRATION_FILE).write_text(json.dumps(damage(good)))
    with pytest.raises(UserError, match=r"calibration.json cannot be used .*dign calibrate"):
        read_calibrator(tmp_path, 3)


def test_scaling_of_other_classes_is_refused(tmp_path):
    write_calibrator(tmp_path, Calibrator("vector", transforms()["vector"], "digits", 9, "clean", 0.5, 0.4))
    with pytest.raises(UserError, match="cannot be used"):
        read_calibrator(tmp_path, 4)


def test_promises_are_made_from_the_held_out_images():
    record = held_out(2000)
    threshold = record.threshold(error=0.15)
    answered = record.confidence >= threshold
    assert 0.05 < float(answered.float().mean()) < 1 and float((~record.correct[answered]).float().mean()) < 0.15
    assert float((record.confidence >= record.threshold(coverage=0.8)).float().mean()) == pytest.approx(0.8, abs=0.001)
    assert 0 < record.quantile(0.9, "threshold") < 1
    for both in ({}, {"error": 0.1, "coverage": 0.5}):
        with pytest.raises(UserError, match="either"):
            record.threshold(**both)
