"""The playground: what it computes, how it says no, and its page in a real browser."""

import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from dign.app.answers import (
    Examples,
    Player,
    calibration_under,
    common_profile,
    look,
    open_examples,
    open_players,
    true_class,
)
from dign.app.page import answer, free_port, stylesheet
from dign.cli import main
from dign.core.errors import UserError
from dign.corruptions import corrupt
from dign.methods import Standard
from dign.metrics import Calibration
from dign.runs.classifier import Classifier
from dign.runs.predict import predict_files, read_images

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_EXAMPLES = Examples(torch.empty(0, 3, 1, 1, dtype=torch.uint8), [], "none")
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}${1+1}"


class Brightness(nn.Module):
    """Logits (0, 100 (mean - 1/2)): class 1 where the image is bright."""

    def forward(self, x):
        bright = 100 * (x.mean(dim=(1, 2, 3)) - 0.5)
        return torch.stack([torch.zeros_like(bright), bright], dim=1)


def player(size=(16, 16), classes=("dark", "bright"), slot=0):
    classifier = Classifier("test", Brightness().eval(), Standard(), list(classes), size)
    return Player(
        "test", "Standard", slot, classifier, torch.device("cpu"), None, "There is nothing: `dign evaluate x`."
    )


@pytest.fixture
def gray(tmp_path):
    """An image of one gray, 130 of 255."""
    path = tmp_path / "gray.png"
    Image.fromarray(np.full((40, 30, 3), 130, dtype=np.uint8)).save(path)
    return path


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run that was evaluated under one condition, and one that was not."""
    folder = tmp_path_factory.mktemp("runs")
    small = ["--model", "tinynet", "--size", "8", "--epochs", "2", "--batch-size", "256", "-q"]
    for args in (
        ["train", "digits", "--method", "standard", *small, "--out", str(folder / "measured")],
        ["train", "digits", "--method", "rse", *small, "--out", str(folder / "plain")],
        ["evaluate", str(folder / "measured"), "--only", "gaussian_noise", "--severity", "3", "-q"],
    ):
        with pytest.raises(SystemExit) as stop:
            main(args)
        assert stop.value.code == 0
    return [folder / "measured", folder / "plain"]


def test_a_clean_image_gets_the_probabilities_worked_out_by_hand(gray):
    (view,) = look([player()], gray, "fog", 0)
    bright = 1 / (1 + math.exp(-100 * (130 / 255 - 0.5)))
    assert [name for name, _ in view.top] == ["bright", "dark"]
    assert view.top[0][1] == pytest.approx(bright, rel=1e-5) and view.top[1][1] == pytest.approx(1 - bright, rel=1e-5)
    assert view.image.shape == (3, 16, 16) and (view.image == 130).all()


def test_a_model_sees_what_evaluation_would_show_it_at_its_own_size(gray):
    small, large, same = look([player((8, 8)), player((32, 32)), player((8, 8))], gray, "shot_noise", 4, draw=7)
    for view, size in ((small, (8, 8)), (large, (32, 32)), (same, (8, 8))):
        expected = corrupt(read_images([gray], size), "shot_noise", 4, seed=7)
        assert torch.equal(view.image, expected[0])
        bright = 1 / (1 + math.exp(-100 * (expected.double().mean().item() / 255 - 0.5)))
        assert dict(view.top)["bright"] == pytest.approx(bright, abs=1e-4)
    other = look([player((8, 8))], gray, "shot_noise", 4, draw=8)[0]
    assert not torch.equal(small.image, other.image)


def test_it_agrees_with_dign_predict(runs, gray):
    players = open_players(runs, "cpu")
    (view,) = look(players[:1], gray, "snow", 0)  # not the second, RSE, which predicts with noise of its own
    predicted = next(predict_files(players[0].classifier, [gray], draws=1, top=5, device="cpu"))
    assert dict(view.top) == pytest.approx(predicted.top, abs=1e-6) and len(view.top) == 5


def test_models_are_told_apart(runs, tmp_path):
    twin = tmp_path / "measured"
    shutil.copytree(runs[0], twin)
    players = open_players([*runs, twin], "cpu")
    assert [each.name for each in players][1] == "plain" and len({each.name for each in players}) == 3
    assert [each.title for each in players] == ["Standard", "RSE", "Standard"]
    assert len({each.slot for each in players}) == 3
    assert all(f".s{each.slot}{{--c:" in stylesheet(players) for each in players)


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
    assert name == "Gaussian Noise, severity 3" and found.state() == stored["bins"]
    assert calibration_under(measured, "gaussian_noise", 0)[1].state() == results["clean"]["bins"]
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


def test_the_answer_escapes_names_and_shows_each_model(gray):
    html = answer([player(classes=("dark", HOSTILE)), player(slot=3)], NO_EXAMPLES, str(gray), "fog", 0, 0)
    assert "<img src=x" not in html and "&lt;img src=x" in html
    assert html.count('class="model') == 2 and html.count("<figure") == 1 and "True class" not in html
    assert "dign evaluate x" in html and "Drop in an image" in answer([player()], NO_EXAMPLES, None, "fog", 0, 0)


def test_the_answer_draws_the_calibration(gray):
    calibration = Calibration()
    calibration.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    measured = type("Measured", (), {"clean": calibration, "corruptions": {}, "folder": Path("runs/x")})()
    each = player()
    each = Player(each.name, each.title, 0, each.classifier, each.device, measured, "")
    html = answer([each], NO_EXAMPLES, str(gray), "fog", 0, 0)
    assert "<svg" in html and "accuracy 50.0 %, calibration error (ECE) 45.0 %, 2 images" in html


def test_a_file_that_is_no_image_gives_one_sentence_without_its_path(tmp_path):
    path = tmp_path / "text.png"
    path.write_text("not a picture")
    html = answer([player()], NO_EXAMPLES, str(path), "fog", 2, 0)
    assert "The image cannot be read: it is not an image in a known format." in html and str(tmp_path) not in html


def test_ports():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match=rf"Port {taken.getsockname()[1]} of 127\.0\.0\.1 cannot be used"):
            free_port("127.0.0.1", taken.getsockname()[1])
    assert free_port("127.0.0.1", 0) > 1023
    for host in ("no such host", "::1"):
        with pytest.raises(UserError, match="is no IPv4 address"):
            free_port(host, 0)


def test_without_gradio_the_command_says_how_to_get_it(dign_command, runs, monkeypatch):
    monkeypatch.setattr("dign.app.page.find_spec", lambda name: None)
    code, out, err = dign_command("play", *runs)
    assert code == 2 and out == "" and err.count("\n") == 1 and "pip install 'dign[play]'" in err


def test_mistakes_get_one_sentence_and_code_2(dign_command, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("dign.app.page.find_spec", lambda name: True)
    unfinished = tmp_path / "unfinished"
    shutil.copytree(runs[0], unfinished)
    (unfinished / "model.safetensors").unlink()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for args, sentence in (
            ((runs[0], "--port", taken.getsockname()[1]), "choose another with --port"),
            ((unfinished, "--port", 0), "has not finished training"),
            ((tmp_path, "--port", 0), "is no model"),
        ):
            code, out, err = dign_command("play", *args)
            assert code == 2 and out == "" and sentence in err and err.count("\n") == 1


# The page in a browser. One server for all of these tests.


@pytest.fixture(scope="module")
def server(runs, tmp_path_factory):
    if find_spec("gradio") is None:
        pytest.skip("needs Gradio: pip install 'dign[play]'")
    hostile = tmp_path_factory.mktemp("hostile") / "hostile"
    shutil.copytree(runs[1], hostile)
    info = json.loads((hostile / "run.json").read_text())
    (hostile / "run.json").write_text(json.dumps(info | {"classes": [HOSTILE] * 10}))
    command = [sys.executable, "-m", "dign", "play", *map(str, runs), str(hostile), "--port", "0", "--no-browser"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Tests that run in the background of a shell inherit an ignored Ctrl-C; a person's terminal does not ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    line = process.stdout.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert address, line + process.stdout.read()
    yield address.group()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=60)[0]
    assert process.returncode == 0 and rest == "Stopped.\n"


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the playwright package to drive a browser")
    if BROWSER is None:
        pytest.skip("needs Chromium, and no chromium was found on the PATH")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def loaded(server, browser):
    """The page, loaded once; at the end there must have been no complaint, and no request to another host."""
    complaints = []
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(60_000)

    def own(url):
        return url.startswith((server, "data:", "blob:")) or urlsplit(url).netloc == urlsplit(server).netloc

    opened.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on("dialog", lambda dialog: complaints.append(dialog.message))
    opened.on("request", lambda request: own(request.url) or complaints.append(request.url))
    opened.goto(server)
    opened.wait_for_selector("#answer .model")
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture
def page(loaded):
    """The page at severity 3 of Gaussian noise, as it opens."""
    choose(loaded, "Gaussian Noise (noise)")
    set_severity(loaded, "Home", "ArrowRight", "ArrowRight", "ArrowRight")
    loaded.wait_for_selector("#answer .seen :text('Gaussian Noise, severity 3')")
    return loaded


def set_severity(page, *keys):
    """Each key is a change of its own, whose answer the page may show in passing: wait for what is to come last."""
    page.locator("#severity input[type=range]").focus()
    for key in keys:
        page.keyboard.press(key)


def choose(page, corruption):
    page.locator("#corruption input").click()
    page.get_by_role("option", name=corruption).click()


def test_the_page_opens_with_an_answer(loaded):
    page = loaded
    assert page.locator("#answer .model").count() == 3
    assert "Gaussian Noise, severity 3, 8 × 8 pixels" in page.locator("#answer .seen").inner_text()
    assert "True class" in page.locator("#answer .seen").inner_text()
    measured, plain = page.locator("#answer .model").nth(0), page.locator("#answer .model").nth(1)
    assert measured.locator("svg.chart").count() == 1 and plain.locator("svg.chart").count() == 0
    assert "dign evaluate" in plain.inner_text()


def test_names_are_text_and_nothing_else(page):
    assert HOSTILE in page.locator("#answer .model").nth(2).inner_text()
    assert page.locator("#answer .model img").count() == 0


def test_severity_and_corruption_act_at_once(page):
    set_severity(page, "Home")
    page.wait_for_selector("#answer:has(.seen :text('clean, 8 × 8')) .model :text('clean images: accuracy')")
    set_severity(page, "End")
    said = "Not measured under Gaussian Noise, severity 5"
    page.wait_for_selector(f"#answer:has(.seen :text('severity 5')) .model :text('{said}')")
    choose(page, "Fog (weather)")
    page.wait_for_selector("#answer .seen :text('Fog, severity 5')")


def test_another_draw_changes_the_noise(page):
    before = page.locator("#answer .seen img").get_attribute("src")
    page.get_by_role("button", name="Draw the corruption").click()
    page.wait_for_function("old => document.querySelector('#answer .seen img').src != old", arg=before)


def test_a_dropped_image_gets_what_the_functions_say(page, runs, tmp_path):
    path = tmp_path / "photo.jpg"
    pixels = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path, quality=60)
    set_severity(page, "Home")
    page.wait_for_selector("#answer .seen :text('clean, 8 × 8')")
    page.get_by_role("button", name="Remove Image").click()
    page.wait_for_selector("#answer :text('Drop in an image')")
    page.locator("#image input[type=file]").set_input_files(path)
    page.wait_for_selector("#answer .model")
    assert "True class" not in page.locator("#answer").inner_text()
    for index, view in enumerate(look(open_players(runs, "cpu"), path, "fog", 0)):
        label, confidence = view.top[0]
        said = page.locator("#answer .said").nth(index).inner_text()
        assert said.split() == [label, f"{100 * confidence:.1f}", "%"]


def test_an_example_is_picked_with_its_class(page, runs):
    labels = open_examples(runs).labels
    index = next(index for index, label in enumerate(labels) if label != labels[0])
    page.locator("#examples button:has(img)").nth(index).click()
    page.wait_for_selector(f"#answer .truth b:text-is('{labels[index]}')")


def test_a_file_that_is_no_image_is_said_to_be_none(page, tmp_path):
    path = tmp_path / "letter.jpg"
    path.write_text("Dear reader")
    page.get_by_role("button", name="Remove Image").click()
    page.wait_for_selector("#answer :text('Drop in an image')")
    page.locator("#image input[type=file]").set_input_files(path)
    said = page.wait_for_selector("#answer [role=alert]").inner_text()
    assert said == "The image cannot be read: it is not an image in a known format."
