"""What the playground computes agrees with evaluation, prediction and arithmetic."""

import json
import math
import shutil

import pytest
import torch
from PIL import Image

from dign.app.answers import Examples, calibration_under, common_profile, look, open_examples, open_players, true_class
from dign.app.cards import stylesheet
from dign.corruptions import corrupt
from dign.metrics import Calibration
from dign.runs.predict import predict, read_images

pytestmark = pytest.mark.slow

NO_EXAMPLES = Examples(torch.empty(0, 3, 1, 1, dtype=torch.uint8), [], "none")


def test_a_clean_image_gets_the_probabilities_worked_out_by_hand(gray, make_player):
    (view,) = look([make_player()], gray, "fog", 0)
    bright = 1 / (1 + math.exp(-100 * (130 / 255 - 0.5)))
    assert [name for name, _ in view.top] == ["bright", "dark"]
    assert view.top[0][1] == pytest.approx(bright, rel=1e-5) and view.top[1][1] == pytest.approx(1 - bright, rel=1e-5)
    assert view.image.shape == (3, 16, 16) and (view.image == 130).all()


def test_a_model_sees_what_evaluation_would_show_it_at_its_own_size(gray, make_player):
    small, large, same = look(
        [make_player((8, 8)), make_player((32, 32)), make_player((8, 8))], gray, "shot_noise", 4, draw=7
    )
    for view, size in ((small, (8, 8)), (large, (32, 32)), (same, (8, 8))):
        expected = corrupt(read_images([gray], size), "shot_noise", 4, seed=7)
        assert torch.equal(view.image, expected[0])
        bright = 1 / (1 + math.exp(-100 * (expected.double().mean().item() / 255 - 0.5)))
        assert dict(view.top)["bright"] == pytest.approx(bright, abs=1e-4)
    other = look([make_player((8, 8))], gray, "shot_noise", 4, draw=8)[0]
    assert not torch.equal(small.image, other.image)


def test_it_agrees_with_dign_predict(runs, gray):
    players = open_players(runs, "cpu")
    (view,) = look(players[:1], gray, "snow", 0)  # not the second, RSE, which predicts with noise of its own
    predicted = predict(players[0].classifier, [gray], draws=1, top=5, device="cpu")[0]
    assert dict(view.top) == pytest.approx(predicted.top, abs=1e-6) and len(view.top) == 5


def test_models_are_told_apart(runs, tmp_path):
    twin = tmp_path / "measured"
    shutil.copytree(runs[0], twin)
    players = open_players([*runs, twin], "cpu")
    assert [each.name for each in players][1] == "plain" and len({each.name for each in players}) == 3
    assert [each.title for each in players] == ["Standard", "RSE", "Standard"]
    assert len({each.slot for each in players}) == 3
    assert all(f".s{each.slot}{{--c:" in stylesheet(players) for each in players)


def test_an_ensemble_says_how_to_measure_it(runs):
    places = [str(place) for place in runs[:2]]
    (player,) = open_players([f"ensemble:{','.join(places)}"])
    assert player.measured is None and f"dign evaluate {' '.join(places)} --ensemble" in player.missing


def test_examples_are_test_images_that_are_known_again(runs, tmp_path, gray):
    examples = open_examples(runs, count=5)
    assert examples.images.shape == (5, 3, 8, 8) and len(examples.labels) == 5
    path = tmp_path / "picked.png"
    Image.fromarray(examples.images[3].permute(1, 2, 0).contiguous().numpy()).save(path)
    assert true_class(path, examples) == examples.labels[3] and true_class(gray, examples) is None
    assert "is in a run folder" in open_examples([tmp_path]).missing and true_class(path, NO_EXAMPLES) is None


def test_calibration_is_that_of_the_chosen_condition_or_a_way_to_get_it(runs):
    measured, plain = open_players(runs, "cpu")
    results = json.loads((runs[0] / "results.json").read_text())
    name, found = calibration_under(measured, "gaussian_noise", 3)
    stored = results["corruptions"]["gaussian_noise"]["severities"]["3"]
    assert name == "Gaussian Noise, severity 3" and found == Calibration.from_state(stored["bins"])
    assert calibration_under(measured, "gaussian_noise", 0)[1] == Calibration.from_state(results["clean"]["bins"])
    for corruption, severity in (("gaussian_noise", 4), ("fog", 3)):
        sentence, nothing = calibration_under(measured, corruption, severity)
        assert nothing is None and f"dign evaluate {runs[0]}"[:60] in sentence
    sentence, nothing = calibration_under(plain, "fog", 0)
    assert nothing is None and "has no results.json: make it with `dign evaluate" in sentence


def test_the_severities_shown_are_those_that_were_measured(runs, tmp_path, gray):
    other = tmp_path / "imagenet"
    shutil.copytree(runs[0], other)
    results = json.loads((other / "results.json").read_text())
    results["evaluation"]["profile"] = "imagenet"
    (other / "results.json").write_text(json.dumps(results))
    cifar, imagenet, plain = open_players([runs[0], other, runs[1]], "cpu")
    assert common_profile([cifar, plain]) == "cifar" and common_profile([imagenet]) == "imagenet"
    assert common_profile([cifar, imagenet]) is None and common_profile([plain]) is None
    assert calibration_under(imagenet, "gaussian_noise", 3, "imagenet")[1] is not None
    sentence, nothing = calibration_under(imagenet, "gaussian_noise", 3)
    assert nothing is None and "`dign play --profile imagenet`" in sentence
    assert calibration_under(imagenet, "gaussian_noise", 0)[1] is not None  # clean images have no severity
    (view,) = look([imagenet], gray, "gaussian_noise", 3, profile="imagenet")
    pixels = read_images([gray], (8, 8))
    assert torch.equal(view.image, corrupt(pixels, "gaussian_noise", 3, profile="imagenet")[0])
    assert not torch.equal(view.image, corrupt(pixels, "gaussian_noise", 3)[0])


def test_broken_results_are_named_and_stop_nothing(runs, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(runs[0], broken)
    (broken / "results.json").write_text("{")
    (each,) = open_players([broken], "cpu")
    assert each.measured is None and "is broken" in each.missing
