"""The page in a real browser: it loads in silence, and its controls work."""

import json
import shutil

import pytest

from dign.report.html.page import build_page
from dign.report.make import study_of

playwright = pytest.importorskip("playwright.sync_api", reason="needs the playwright package to drive a browser")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium, and no chromium was found on the PATH")


@pytest.fixture(scope="module")
def browser():
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
    """Names of classes, corruptions and folders come from strangers' folders too."""
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
