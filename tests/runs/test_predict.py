"""Predictions for files: the pixels are those of training, and stability is a fraction that can be worked out."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import dign.data
import dign.runs.predict
from dign.core.errors import UserError
from dign.methods import Standard
from dign.runs.calibrator import Calibrator, HeldOut
from dign.runs.classifier import Classifier
from dign.runs.ensemble import Ensemble
from dign.runs.predict import Promise, find_images, measure_stability, predict, read_images


class Brightness(nn.Module):
    """Logits (0, 100 (mean - threshold)): class 1 where the image is bright."""

    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold

    def forward(self, x):
        bright = 100 * (x.mean(dim=(1, 2, 3)) - self.threshold)
        return torch.stack([torch.zeros_like(bright), bright], dim=1)


def classifier(threshold=0.5, size=(4, 4)):
    return Classifier(Brightness(threshold), Standard(), ["dark", "bright"], size)


def save(path, level, size=(6, 9)):
    Image.fromarray(np.full((*size, 3), level, dtype=np.uint8)).save(path)
    return path


def test_stability_is_the_probability_that_noise_does_not_cross_the_threshold():
    """The mean of 48 pixels under N(0, s^2) noise is N(m, s^2/48): P(mean > threshold) is a normal tail."""
    image, sigma = torch.full((3, 4, 4), 0.5), 0.1
    for distance in (0.0, 0.01, 0.02):
        expected = 0.5 * (1 + math.erf(distance / (sigma / math.sqrt(48)) / math.sqrt(2)))
        found = measure_stability(classifier(0.5 - distance), image, 1, sigma, draws=4000)
        assert found == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 4000))


def test_no_noise_changes_nothing_and_draws_need_not_fill_a_batch():
    image = torch.full((3, 4, 4), 0.6)
    assert measure_stability(classifier(), image, 1, 0.0, draws=7) == 1.0
    assert measure_stability(classifier(), image, 0, 0.0, draws=7) == 0.0
    counted = 51 * measure_stability(classifier(0.6), image, 1, 0.3, draws=51)
    assert 0 < counted < 51 and counted == pytest.approx(round(counted))


def test_noise_is_clipped_as_an_image_file_would_be():
    """White stays on the bright side of its clipped mean 1 - sigma/sqrt(2 pi) only below it."""
    white, sigma = torch.ones(3, 32, 32), 0.2
    clipped_mean = 1 - sigma / math.sqrt(2 * math.pi)
    assert measure_stability(classifier(clipped_mean - 0.02, (32, 32)), white, 1, sigma) == 1.0
    assert measure_stability(classifier(clipped_mean + 0.02, (32, 32)), white, 1, sigma) == 0.0


def test_an_images_result_does_not_depend_on_the_others(tmp_path):
    files = [save(tmp_path / f"{level}.png", level) for level in (120, 128, 135)]
    together = predict(classifier(), files, draws=60)
    alone = [predict(classifier(), [file], draws=60)[0] for file in files]
    assert together == alone
    assert [each.label for each in together] == ["dark", "bright", "bright"]
    assert together[0].confidence == pytest.approx(1 / (1 + math.exp(100 * (120 / 255 - 0.5))), rel=1e-5)
    assert list(together[0].top) == ["dark", "bright"] and sum(together[0].top.values()) == pytest.approx(1)
    assert list(together[0].stability) == ["0.05", "0.1", "0.2", "0.3"]


def test_files_are_read_as_a_folder_of_training_images_is(tmp_path):
    random = np.random.default_rng(0)
    for name in ("a", "b"):
        for split in ("train", "test"):
            (tmp_path / "photos" / split / name).mkdir(parents=True)
            for index in range(3):
                pixels = random.integers(0, 256, (40 + 9 * index, 61, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(tmp_path / "photos" / split / name / f"{index}.jpg")
    data = dign.data.load(f"folder:{tmp_path / 'photos'}", size=16, validation=0, root=tmp_path / "cache")
    files = find_images([str(tmp_path / "photos" / "test")])
    assert len(files) == 6 and torch.equal(read_images(files, (16, 16)), data.test.images)


def test_a_shape_that_is_no_square_takes_the_middle(tmp_path):
    pixels = np.zeros((8, 30, 3), dtype=np.uint8)
    pixels[:, 2:28] = 200  # the middle 16 columns, and those that a bicubic filter looks at beside them
    Image.fromarray(pixels).save(tmp_path / "wide.png")
    assert (read_images([tmp_path / "wide.png"], (4, 8)) == 200).all()
    Image.fromarray(pixels).save(tmp_path / "fits.png")
    assert torch.equal(read_images([tmp_path / "fits.png"], (8, 30))[0], torch.from_numpy(pixels).permute(2, 0, 1))


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff nonsense")
    with pytest.raises(UserError, match=r"broken\.jpg cannot be read: "):
        read_images([tmp_path / "broken.jpg"], (8, 8))
    with pytest.raises(UserError, match=r"nowhere\.png cannot be read: the file does not exist"):
        read_images([tmp_path / "nowhere.png"], (8, 8))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="contains no images"):
        find_images([str(tmp_path / "empty")])


def test_hidden_folders_are_passed_over_as_in_training(tmp_path):
    (tmp_path / ".thumbnails").mkdir()
    save(tmp_path / ".thumbnails" / "small.png", 3)
    assert find_images([str(tmp_path), str(save(tmp_path / "a.png", 3))]) == [tmp_path / "a.png"] * 2


def test_files_folders_and_arrays_give_the_same_predictions(tmp_path):
    files = [save(tmp_path / f"{level}.png", level, (4, 4)) for level in (120, 135)]
    expected = predict(classifier(), files, draws=20)
    assert predict(classifier(), tmp_path, draws=20) == predict(classifier(), files, draws=20) == expected
    pixels = read_images(files, (4, 4))
    for images in (pixels, pixels.numpy(), pixels / 255):
        found = predict(classifier(), images, draws=20)
        assert [each.image for each in found] == ["0", "1"]
        assert [replace(each, image=file.image) for each, file in zip(found, expected, strict=True)] == expected


def test_an_array_is_not_changed_and_without_noise_levels_there_is_no_stability():
    images = torch.full((2, 3, 4, 4), 0.75)
    (first, _) = predict(classifier(), images, sigmas=())
    assert first.label == "bright" and first.stability == {}
    assert torch.equal(images, torch.full((2, 3, 4, 4), 0.75))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (torch.zeros(2, 3, 5, 4), r"images must have shape \(N,3,4,4\), not \(2, 3, 5, 4\)"),
        (torch.zeros(3, 4, 4), r"images must have shape \(N,3,4,4\)"),
        (torch.full((1, 3, 4, 4), 255.0), r"float in \[0,1\]: undo normalization"),
        (torch.full((1, 3, 4, 4), math.nan), r"float in \[0,1\]"),
        (torch.zeros(1, 3, 4, 4, dtype=torch.int64), "images must be uint8"),
        ([], "images is empty"),
    ],
)
def test_wrong_images_are_named(images, message):
    with pytest.raises(UserError, match=message):
        predict(classifier(), images)


def test_a_path_is_loaded(tmp_path):
    with pytest.raises(UserError, match="is not a model"):
        predict(tmp_path, torch.zeros(1, 3, 4, 4))


def calibrated(held_out):
    """The model of these tests with a record of held-out images."""
    found = classifier(size=(2, 2))
    found.calibrator = Calibrator("temperature", 1.0, "made up", len(held_out), "clean", 0.5, 0.5, held_out)
    return found


def record(confidence, correct):
    scores = 1 - torch.where(correct, confidence, 1 - confidence)
    return HeldOut(confidence, correct, {"threshold": scores, "adaptive": torch.where(correct, 0.0, confidence)})


def test_below_the_threshold_of_a_promise_the_answer_is_unsure():
    confidence = torch.cat([torch.full((500,), 0.95), torch.full((500,), 0.55)])
    model = calibrated(record(confidence, torch.arange(1000) < 700))
    images = torch.stack([torch.full((3, 2, 2), value) for value in (0.0, 0.5, 1.0)])
    plain = predict(model, images, sigmas=())
    assert all(each.unsure is None and each.candidates is None for each in plain)
    sure = predict(model, images, sigmas=(), promise=Promise(error=0.05))
    assert [each.unsure for each in sure] == [each.confidence < 0.95 for each in plain]
    assert {each.unsure for each in sure} == {True, False}
    half = predict(model, images, sigmas=(), promise=Promise(coverage=1.0))
    assert [each.unsure for each in half] == [each.confidence < 0.55 for each in plain]


def test_prediction_sets_hold_more_classes_where_the_model_is_less_sure():
    confidence = torch.linspace(0.5, 1, 1000)
    model = calibrated(record(confidence, torch.arange(1000) % 10 != 0))
    images = torch.stack([torch.full((3, 2, 2), value) for value in (0.0, 0.5)])
    certain, torn = predict(model, images, sigmas=(), promise=Promise(sets=0.95))
    assert torn.candidates == [torn.label, "dark" if torn.label == "bright" else "bright"]
    assert certain.candidates[0] == certain.label and certain.to_dict()["candidates"] == certain.candidates


def test_without_held_out_images_nothing_is_promised():
    with pytest.raises(UserError, match="calibrate it first"):
        predict(classifier(size=(2, 2)), torch.zeros(1, 3, 2, 2), promise=Promise(error=0.05))
    with pytest.raises(UserError, match="An ensemble has no record"):
        members = [classifier(size=(2, 2)), classifier(size=(2, 2))]
        predict(Ensemble(members), torch.zeros(1, 3, 2, 2), promise=Promise(error=0.05))
    for wrong in (Promise(sets=1.5), Promise(error=5), Promise(coverage=2)):
        name = next(name for name in ("error", "coverage", "sets") if getattr(wrong, name) is not None)
        with pytest.raises(UserError, match=f"`{name}` must be"):
            predict(calibrated(record(torch.ones(10), torch.ones(10) > 0)), torch.zeros(1, 3, 2, 2), promise=wrong)
    with pytest.raises(UserError, match="either"):
        predict(
            calibrated(record(torch.ones(10), torch.ones(10) > 0)),
            torch.zeros(1, 3, 2, 2),
            promise=Promise(error=0.05, coverage=0.5),
        )


def test_files_that_cannot_be_read_are_left_out_and_none_is_decoded_twice(tmp_path, monkeypatch):
    """Of the others each prediction is that of the file alone; where nothing is left, that is an error."""
    good, bad = tmp_path / "good.png", tmp_path / "bad.png"
    Image.fromarray(np.full((4, 4, 3), 90, np.uint8)).save(good)
    bad.write_bytes(b"not a picture")
    decoded, original = [], dign.runs.predict.decode
    monkeypatch.setattr(dign.runs.predict, "decode", lambda file, *how: decoded.append(file) or original(file, *how))
    (kept,) = predict(classifier(), [bad, good], draws=5, skip_unreadable=True)
    assert sorted(decoded) == [bad, good]
    assert kept == predict(classifier(), good, draws=5)[0]
    with pytest.raises(UserError, match="None of the 1 images can be read"):
        predict(classifier(), bad, skip_unreadable=True)
