"""Stability over sequences: flips counted by hand, any model, runs."""

import json

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.corruptions.sequences import PERTURBATIONS, make_frames
from dign.evaluation.sequences import (
    SequenceResult,
    Stability,
    evaluate_sequences,
    save_sequences,
    sequences_subject,
)
from dign.evaluation.subjects import open_run


def brightness_model(images):
    """Class 1 where the picture is brighter than half, else class 0."""
    bright = images.mean((1, 2, 3)) > 0.5
    return torch.stack([~bright, bright], 1).float()


@pytest.fixture(scope="module")
def gray():
    levels = torch.tensor([60, 100, 127, 128, 150, 250], dtype=torch.uint8)
    return levels.view(-1, 1, 1, 1).expand(-1, 3, 16, 16).contiguous(), torch.zeros(6, dtype=torch.int64)


def test_an_answer_that_changes_once_is_one_flip_in_thirty(gray):
    """Brightness goes from -0.225 to +0.225: levels from 71 to 184 cross the half once, the others never."""
    result = evaluate_sequences(brightness_model, gray, ["brightness", "rotate"])
    expected = 100 * 4 / (6 * 30)
    assert result.sequences["brightness"].flip_probability == pytest.approx(expected)
    assert result.sequences["brightness"].top5_distance == pytest.approx(2 * 4 / (6 * 30)), "two classes change places"
    assert result.images == 6 and not result.complete
    flips = [each.flip_probability for each in result.sequences.values()]
    assert result.mean_flip_probability == pytest.approx(sum(flips) / 2)


def test_noise_is_compared_with_the_first_frame(gray):
    images, _ = gray
    answers = [brightness_model(frame.float() / 255).argmax(1) for frame in make_frames(images, "gaussian_noise")]
    expected = sum(int((answer != answers[0]).sum()) for answer in answers[1:])
    result = evaluate_sequences(brightness_model, gray, ["gaussian_noise"])
    assert result.sequences["gaussian_noise"].flip_probability == pytest.approx(100 * expected / (6 * 30))


def test_the_batch_size_does_not_matter_and_floats_give_what_bytes_give(gray):
    model = nn.Sequential(nn.Flatten(), nn.Linear(768, 7))
    whole = evaluate_sequences(model, gray, ["spatter", "shot_noise"], seed=4)
    parts = evaluate_sequences(model, (gray[0].float() / 255, gray[1]), ["spatter", "shot_noise"], seed=4, batch_size=4)
    for name, each in whole.sequences.items():
        assert parts.sequences[name].flip_probability == pytest.approx(each.flip_probability)
    assert model.training, "left as it was"
    assert "spatter" in str(whole) and "mean" in str(whole)


@pytest.mark.slow
def test_a_run_has_a_file_of_its_own(run):
    subject, found = open_run(run)
    result = sequences_subject(subject, found.data, ("translate", "tilt"), images=20, device="cpu")
    save_sequences(run.path, result)
    stored = json.loads((run.path / "sequences.json").read_text())
    assert result.images == stored["images"] == 20 and stored["split"] == "test" and stored["seed"] == 0
    assert stored["mean"]["flip_probability"] == pytest.approx(result.mean_flip_probability)
    assert set(stored["sequences"]) == {"translate", "tilt"}


def test_wrong_names_list_the_known_ones(gray):
    with pytest.raises(UserError, match=r"Did you mean 'tilt'.*translate"):
        evaluate_sequences(brightness_model, gray, ["tlt"])
    with pytest.raises(UserError, match="must be a list"):
        evaluate_sequences(brightness_model, gray, "tilt")
    with pytest.raises(UserError, match="no images"):
        evaluate_sequences(brightness_model, (gray[0][:0], gray[1][:0]), ["tilt"])


def test_fewer_perturbations_do_not_replace_all_ten(tmp_path):
    def result(names):
        return SequenceResult({name: Stability(1.0, 0.1) for name in names}, 20, "test")

    assert save_sequences(tmp_path, result(["tilt"])).name == "sequences.json"
    assert save_sequences(tmp_path, result(PERTURBATIONS)).name == "sequences.json"
    assert save_sequences(tmp_path, result(["tilt", "snow"])).name == "sequences-tilt-snow.json"
    assert set(json.loads((tmp_path / "sequences.json").read_text())["sequences"]) == set(PERTURBATIONS)
