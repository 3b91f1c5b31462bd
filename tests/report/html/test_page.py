"""The page as text and in a real browser: what it says, that nothing from a file becomes markup, that it works."""

import base64
import json
import re
import shutil
from html.parser import HTMLParser

import pytest
import torch
from fake_runs import add_confusion, write_fake_run
from torch import nn

import dign
from dign.data.dataset import Split
from dign.methods import Standard
from dign.report.analysis.story import headline
from dign.report.html.examples_section import PNG
from dign.report.html.page import build_page
from dign.report.make import study_of
from dign.runs.calibrate import fit_calibrator
from dign.runs.classifier import Classifier

pytestmark = pytest.mark.slow

EVIL = '<script>window.evil=1</script><img src=x onerror="window.evil=1">'
ONE_PIXEL = base64.b64encode(PNG + b"rest of a picture").decode()
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Outline(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        self.attributes += [(name, key, value) for key, value in attributes]


def test_the_page_needs_nothing_but_itself(grid_runs):
    page = build_page(study_of([grid_runs]))
    assert len(page.encode()) < 5_000_000
    outline = Outline(page)
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(outline.elements)
    for name, key, value in outline.attributes:
        assert key not in {"src", "srcset", "action"} or value.startswith("data:image/png"), (name, key, value)
        assert key != "href" or value.startswith("#")
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", page)


def test_the_same_runs_give_the_same_bytes(demo_runs):
    assert build_page(study_of([demo_runs])) == build_page(study_of([demo_runs]))


def test_names_from_files_stay_text(fake_run, tmp_path):
    fake_run(tmp_path / "a", "DiGN", run={"title": EVIL, "name": EVIL, "model": EVIL}, config={"lr": EVIL})
    fake_run(tmp_path / "b", "DiGN", run={"title": f"{EVIL}2", "model": "other"})
    results = json.loads((tmp_path / "a" / "results.json").read_text())
    results["corruptions"][EVIL] = {**results["corruptions"]["shot_noise"], "family": EVIL}
    results["evaluation"]["versions"] = {EVIL: EVIL}
    (tmp_path / "a" / "results.json").write_text(json.dumps(results))
    outline = Outline(build_page(study_of([tmp_path])))
    assert outline.elements.count("script") == 1 and "img" not in outline.elements
    assert not [key for _, key, _ in outline.attributes if key.startswith("on")]


def test_warnings_are_on_the_page(fake_run, tmp_path):
    fake_run(tmp_path / "good")
    (fake_run(tmp_path / "rotten") / "results.json").write_text("{")
    page = build_page(study_of([tmp_path]))
    assert "rotten" in page and 'class="warnings"' in page


def test_panels_appear_only_where_there_is_something_to_show(demo_runs, fake_run, tmp_path):
    page = build_page(study_of([demo_runs]))
    assert 'id="training"' in page and 'id="landscape"' not in page and 'id="examples"' not in page
    folder = fake_run(tmp_path / "a")
    (folder / "metrics.jsonl").unlink()
    panels = {name: {"mean": [0.1, 0.2]} for name in ("loss_difference", "accuracy", "first_order", "second_order")}
    landscape = {"settings": {"radii": [1, 2]}, "models": [{"panels": panels}]}
    (folder / "landscape.json").write_text(json.dumps(landscape))
    example = {"corruption": "clean", "severity": 0, "index": 4, "label": EVIL, "prediction": "7", "confidence": 61.2}
    (folder / "examples.json").write_text(json.dumps({"images": [{**example, "png": ONE_PIXEL}]}))
    page = build_page(study_of([tmp_path]))
    assert 'id="training"' not in page and 'id="landscape"' in page and 'id="examples"' in page
    assert page.count("<img") == 1 and "7 61 %" in page


def test_several_models_have_their_own_panels(fake_run, tmp_path):
    for model in ("one", "two"):
        fake_run(tmp_path / f"{model}-a", "Standard", model=model)
        fake_run(tmp_path / f"{model}-b", "DiGN", model=model)
    page = build_page(study_of([tmp_path]))
    assert page.count("<h3>two</h3>") >= 4 and "on two" in headline(study_of([tmp_path])) + " on two"


# In a browser.


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
def address(demo_runs, tmp_path_factory):
    return write_page([demo_runs], tmp_path_factory.mktemp("page"))


def write_page(paths, folder):
    path = folder / "report.html"
    path.write_text(build_page(study_of(paths)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def open_page(browser):
    """Open an address; at the end, there must have been no message, no error and no request but for the file."""
    contexts, complaints = [], []

    def open_(address, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: request.url.startswith(("file:", "data:")) or complaints.append(request.url))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []


def rows(page):
    """Names in the summary table that can be seen, from top to bottom."""
    found = page.locator("#summary-table tbody tr")
    return [found.nth(i).locator("th").inner_text() for i in range(found.count()) if found.nth(i).is_visible()]


def panels(page):
    return [panel.get_attribute("id") for panel in page.locator("main > section").all() if panel.is_visible()]


def test_sorting_puts_the_best_first_and_then_last(open_page, address):
    page = open_page(address)
    head = page.locator("#summary-table thead th", has_text="mCA-N")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert rows(page) == ["DiGN", "DiGN w/o CR", "RSE", "Standard"]
    head.get_by_role("button").click()
    assert rows(page) == ["Standard", "RSE", "DiGN w/o CR", "DiGN"]
    error = page.locator("#summary-table thead th", has_text="RMSE-N")
    error.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert error.get_attribute("aria-sort") == "ascending" and head.get_attribute("aria-sort") is None
    assert rows(page)[0] == "DiGN" and rows(page)[-1] == "Standard"


def test_filtering_by_words(open_page, address):
    page = open_page(address)
    page.locator("#filter").fill("DIGN")
    assert rows(page) == ["DiGN w/o CR", "DiGN"]
    assert page.locator("#shown").inner_text() == "2 of 4 rows"
    page.locator("#filter").fill("dign cr")
    assert rows(page) == ["DiGN w/o CR"]
    page.locator("#filter").fill("")
    assert len(rows(page)) == 4


def test_tabs_by_mouse_keyboard_and_address(open_page, address):
    page = open_page(address)
    assert panels(page) == ["summary"]
    page.get_by_role("tab", name="Calibration").click()
    assert panels(page) == ["calibration"] and page.url.endswith("#calibration")
    page.keyboard.press("ArrowRight")
    assert panels(page) == ["training"]
    page.keyboard.press("Home")
    assert panels(page) == ["summary"]
    page.keyboard.press("ArrowLeft")
    assert panels(page) == ["runs"]
    assert panels(open_page(address + "#corruptions")) == ["corruptions"]


def hover(page, mark):
    """Scroll there first and let the scroll event pass: scrolling hides the numbers, as it should."""
    mark.scroll_into_view_if_needed()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    mark.hover()


def test_hovering_gives_the_numbers(open_page, address, demo_runs):
    page = open_page(address)
    results = json.loads((demo_runs / "dign" / "results.json").read_text())
    hover(page, page.locator("#summary svg .hit").first)
    tip = page.locator("#tip")
    tip.wait_for(state="visible")  # a loaded machine may need a moment
    assert f"DiGN\n{results['clean']['accuracy']:.1f}" in tip.inner_text()
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")
    page.get_by_role("tab", name="Corruptions").click()
    hover(page, page.locator(".heat td[data-tip]").first)
    tip.wait_for(state="visible")
    assert "Gaussian Noise, severity 1" in tip.inner_text()


def test_a_chart_is_read_by_keyboard(open_page, address):
    page = open_page(address)
    page.locator("#summary svg").first.focus()
    page.keyboard.press("ArrowRight")
    assert "clean" in page.locator("#tip").inner_text()
    page.keyboard.press("ArrowRight")
    assert "severity 1" in page.locator("#tip").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()


def test_a_method_can_be_hidden_everywhere(open_page, address):
    page = open_page(address)
    chip = page.locator("#legend button", has_text="RSE")
    chip.click()
    assert chip.get_attribute("aria-pressed") == "false" and chip.is_visible()
    assert "RSE" not in rows(page)
    page.locator("#summary svg .hit").first.hover()
    assert "RSE" not in page.locator("#tip").inner_text()
    chip.click()
    assert "RSE" in rows(page)


def test_light_dark_and_the_button(open_page, address):
    def ground(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = (open_page(address, color_scheme=scheme) for scheme in ("light", "dark"))
    assert ground(light) == "rgb(251, 250, 247)" and ground(dark) == "rgb(20, 22, 26)"
    color = "getComputedStyle(document.querySelector('#summary svg .line')).stroke"
    assert light.evaluate(color) != dark.evaluate(color)
    light.locator("#theme").click()
    assert ground(light) == ground(dark) and light.evaluate(color) == dark.evaluate(color)
    light.locator("#theme").click()
    assert ground(light) == "rgb(251, 250, 247)"


def test_a_phone_never_scrolls_the_page_sideways(open_page, address):
    page = open_page(address, viewport={"width": 360, "height": 740}, has_touch=True)
    for tab in page.get_by_role("tab").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab.inner_text()
    page.get_by_role("tab", name="Summary").click()
    page.locator("#summary svg .hit").nth(2).tap()
    box = page.locator("#tip").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 360


def test_what_a_calibrated_model_knows_is_drawn_at_every_width(open_page, tmp_path):
    """Risk and coverage, promises, reliability before and after: from a model with a calibrator and its images."""
    torch.manual_seed(0)
    images = torch.randint(256, (200, 3, 8, 8), dtype=torch.uint8)
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    confidence, labels = network(images.float() / 255).softmax(1).max(1)
    unsure = confidence < confidence.quantile(0.15)  # wrong here alone: an error of 5 % can be promised for the rest
    labels[unsure] = (labels[unsure] + 1) % 3
    classifier = Classifier(network, Standard(), ["a", "b", "c"], (8, 8))
    classifier.calibrator = fit_calibrator(network, Standard(), Split(images[:100], labels[:100]))
    conditions = dign.Conditions(corruptions=["shot_noise", "impulse_noise", "speckle_noise"], severities=[1, 5])
    dign.evaluate(classifier, (images[100:], labels[100:]), conditions).save(tmp_path / "run")
    address = write_page([tmp_path / "run"], tmp_path)
    for width in (1280, 390):
        page = open_page(address + "#unsure", viewport={"width": width, "height": 800}, color_scheme="dark")
        assert page.locator("#unsure figure:visible").count() == 5, "two curves and three charts of promises"
        page.locator("#unsure summary").click()
        assert page.locator("#unsure details h4:visible").count() == 11, "with the three above, all scores"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        hover(page, page.locator("#unsure svg .hit").first)
        page.locator("#tip").wait_for(state="visible")
        assert "answered" in page.locator("#tip").inner_text()
        page.mouse.move(2, 2)
        page.get_by_role("tab", name="Calibration").click()
        titles = page.locator("#calibration figcaption.above:visible").all_inner_texts()
        assert [title.partition("ECE")[0].strip() for title in titles][:2] == [
            "Clean images, before",
            "Clean images, after",
        ]
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_printing_shows_every_part(open_page, address):
    page = open_page(address)
    page.emulate_media(media="print", color_scheme="dark")
    assert len(panels(page)) == page.locator("main > section").count() > 4
    assert not page.locator("#tabs").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")


def test_all_of_it_is_readable_without_scripts(open_page, address):
    page = open_page(address, java_script_enabled=False)
    assert page.locator("section#runs").is_visible() and page.locator("section#summary").is_visible()
    assert not page.locator("#filter").is_visible()


def test_hostile_names_do_nothing(open_page, fake_run, tmp_path):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'>{{7*7}}"
    fake_run(tmp_path / "a", run={"title": evil, "name": evil})
    fake_run(tmp_path / "b", "Standard", config={"schedule": evil})
    page = open_page(write_page([tmp_path / "a", tmp_path / "b"], tmp_path))
    page.locator("#summary svg .hit").first.hover()
    assert "<script>alert(1)" in page.locator("#tip").inner_text()
    assert page.locator("img").count() == 0


def test_a_class_called_script_does_nothing(open_page, fake_run, tmp_path):
    """Names of classes, corruptions and folders are untrusted as well."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>"
    folder = fake_run(tmp_path / "<img src=x onerror=alert(3)><script>alert(4)<" / "a")
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    shown = {"index": 0, "corruption": "clean", "severity": 0, "confidence": 50.0, "png": pixel}
    entries = [{**shown, "label": evil, "prediction": evil}, {**shown, "label": "a", "prediction": "b", "png": evil}]
    (folder / "examples.json").write_text(json.dumps({"images": entries}))
    results = json.loads((folder / "results.json").read_text())
    results["classes"] = [evil, "b"]
    (folder / "results.json").write_text(json.dumps(results))
    page = open_page(write_page([tmp_path], tmp_path))
    for tab in page.get_by_role("tab").all():
        tab.click()
    assert evil in page.content().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"')
    sources = [image.get_attribute("src") for image in page.locator("img").all()]
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert page.locator("script:not([src])").count() <= 1 and page.locator("[onerror]").count() == 0


def test_a_large_grid_loads_and_is_small(open_page, grid_runs, tmp_path):
    address = write_page([grid_runs], tmp_path)
    assert (tmp_path / "report.html").stat().st_size < 5_000_000
    page = open_page(address)
    for tab in page.get_by_role("tab").all():
        tab.click()
    assert len(page.locator(".heat").all()) == 10


LONG_CLASSES = [f"{'very ' * (index % 4)}long name of class {index}" for index in range(20)]


@pytest.fixture(scope="module")
def own_study(tmp_path_factory):
    """Runs of one's own: a method with several settings, close results, an over-long name, examples."""
    root = tmp_path_factory.mktemp("own")
    entry = {
        "severity": 3,
        "corruption": "shot_noise",
        "confidence": 80.0,
        "png": ONE_PIXEL,
        "label": "a long name",
    }
    for sigma in (0.1, 0.3, 0.5):
        for weight in (1.0, 5.0):
            settings = {"settings.dign.sigma_max": sigma, "settings.dign.weight": weight}
            folder = write_fake_run(root / f"{sigma}-{weight}", "DiGN", config=settings)
            images = [{**entry, "index": i, "prediction": f"class {i}"} for i in range(4)]
            (folder / "examples.json").write_text(json.dumps({"images": images}))
            add_confusion(folder, [str(digit) for digit in range(10)])
    add_confusion(write_fake_run(root / "standard", "Standard"), LONG_CLASSES)
    names = {"title": "A_method_without_spaces_whose_name_is_far_too_long_for_any_chart", "name": "a-run-" * 20}
    add_confusion(write_fake_run(root / "long", "RSE", run=names), ["a_class_" * 12, *LONG_CLASSES])
    return root


@pytest.fixture(scope="module")
def own_address(own_study, tmp_path_factory):
    return write_page([own_study], tmp_path_factory.mktemp("page"))


TEXTS_ASTRAY = """() => [...document.querySelectorAll('svg.chart')].flatMap((chart) => {
  const frame = chart.getBoundingClientRect();
  const texts = [...chart.querySelectorAll('text')];
  const boxes = texts.map((text) => text.getBoundingClientRect());
  return texts.flatMap((text, i) => {
    const a = boxes[i];
    const outside = a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 2
      || a.bottom > frame.bottom + 2;
    const covered = boxes.some((b, j) => j < i && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.4 * Math.min(a.height, b.height));
    return frame.width && (outside || covered) ? [text.textContent] : [];
  });
})"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_names_in_charts_stay_inside_and_apart_and_nothing_overflows(
    open_page, own_address, address, grid_address, width, scheme
):
    for where in (own_address, address, grid_address):
        page = open_page(where, viewport={"width": width, "height": 900}, color_scheme=scheme)
        for tab in page.get_by_role("tab").all():
            tab.click()
            assert page.evaluate(TEXTS_ASTRAY) == [], tab.inner_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, tab.inner_text()


def test_a_cell_of_a_confusion_matrix_tells_its_numbers(open_page, own_address):
    page = open_page(own_address)
    page.get_by_role("tab", name="Classes").click()
    hover(page, page.locator("#classes .card svg .hit").first)
    page.locator("#tip").wait_for(state="visible")
    assert "Right" in page.locator("#tip").inner_text() and "Images" in page.locator("#tip").inner_text()


def test_variants_have_short_names_everywhere_and_their_settings_in_a_table(open_page, own_address):
    page = open_page(own_address)
    assert re.search(r"DiGN [A-F] keeps", page.locator("h1").inner_text())
    chips = page.locator("#legend button")
    assert "DiGN A" in chips.all_inner_texts()
    assert page.locator("#legend button", has_text="DiGN A").get_attribute("title") == "sigma_max 0.1, weight 1.0"
    table = page.get_by_role("region", name="What differs")
    assert table.locator("tbody tr").first.inner_text().split() == ["DiGN", "A", "0.1", "1.0"]


@pytest.fixture(scope="module")
def grid_address(grid_runs, tmp_path_factory):
    return write_page([grid_runs], tmp_path_factory.mktemp("page"))


def test_the_paper_has_a_tab_only_where_something_can_be_compared(open_page, own_address, grid_address):
    assert open_page(own_address).get_by_role("tab", name="Paper").count() == 0
    page = open_page(grid_address)
    page.get_by_role("tab", name="Paper").click()
    assert "beside the paper's" in page.locator("#paper").inner_text()
