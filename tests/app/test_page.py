"""The playground's server, and its page in a real browser."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image

from dign.app.answers import look, open_examples, open_players
from dign.app.page import free_port
from dign.core.errors import UserError

pytestmark = pytest.mark.slow

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}${1+1}"


def test_ports():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(UserError, match=rf"port {taken.getsockname()[1]} of 127\.0\.0\.1 cannot be used"):
            free_port("127.0.0.1", taken.getsockname()[1])
    assert free_port("127.0.0.1", 0) > 1023
    for host in ("no such host", "::1"):
        with pytest.raises(UserError, match="expected an IPv4 address"):
            free_port(host, 0)


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
        # Tests that run in the background of a shell inherit an ignored Ctrl-C; a user's terminal does not ignore it.
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


def test_a_file_that_is_not_an_image_gets_a_sentence(page, tmp_path):
    path = tmp_path / "letter.jpg"
    path.write_text("Dear reader")
    page.get_by_role("button", name="Remove Image").click()
    page.wait_for_selector("#answer :text('Drop in an image')")
    page.locator("#image input[type=file]").set_input_files(path)
    said = page.wait_for_selector("#answer [role=alert]").inner_text()
    assert said == "The image cannot be read: it is not an image in a known format."


def test_on_a_phone_the_answer_follows_the_controls_and_nothing_overflows(server, browser):
    context = browser.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(server)
    page.wait_for_selector("#answer .model")
    top = {name: page.locator(name).bounding_box()["y"] for name in ("#severity", "#answer", "#examples")}
    assert top["#severity"] < top["#answer"] < top["#examples"]
    first = page.locator("#answer .said").first.bounding_box()
    assert first["y"] + first["height"] < 800, "the first answer is on the first screen"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_the_page_has_the_report_s_ground_in_light_and_dark(server, browser):
    for scheme, ground in (("light", "rgb(251, 250, 247)"), ("dark", "rgb(20, 22, 26)")):
        context = browser.new_context(color_scheme=scheme)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(server)
        page.wait_for_selector("#answer .model")
        found = page.evaluate("getComputedStyle(document.querySelector('.gradio-container')).backgroundColor")
        assert found == ground
        context.close()
