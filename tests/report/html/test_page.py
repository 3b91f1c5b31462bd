"""The page as text: what it says, and that nothing from a file becomes markup."""

import base64
import itertools
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from dign.report.analysis.story import headline, opening
from dign.report.analysis.study import METHOD_ORDER, make_study
from dign.report.html.calibration_charts import reliability_diagram
from dign.report.html.charts import nice_ticks
from dign.report.html.examples_section import PNG, example_images
from dign.report.html.markup import Html, join, tag
from dign.report.html.page import build_page
from dign.report.html.run_sections import loss_curve, validation_curve
from dign.report.load import load_run, load_runs
from dign.report.make import study_of
from dign.report.palette import ColorS, heat_color, relative_luminance

EVIL = '<script>window.evil=1</script><img src=x onerror="window.evil=1">'
ONE_PIXEL = base64.b64encode(PNG + b"rest of a picture").decode()


class Outline(HTMLParser):
    """Elements and attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.attributes, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.elements.append(name)
        self.attributes += [(name, key, value) for key, value in attributes]


def test_text_is_escaped_and_markup_is_not():
    assert tag("p", "<b>", Html("<i></i>"), title='a"b') == '<p title="a&quot;b">&lt;b&gt;<i></i></p>'
    assert join(["a", None, ("<", 3)]) == "a&lt;3"
    assert tag("line", x1=1.0, x2=0.3333, stroke_width=2) == '<line x1="1" x2="0.33" stroke-width="2"/>'


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


def test_the_opening_says_who_is_best_with_the_numbers(demo_runs):
    study = study_of([demo_runs])
    means = {group.label: group.runs[0].summary["mca_n"] for group in study.groups}
    assert headline(study) == (
        f"DiGN keeps {means['DiGN']:.1f} % accuracy under noise; Standard keeps {means['Standard']:.1f} %."
    )
    text = " ".join(opening(study))
    assert "best of 4" in text and "nobody can say whether that is luck" in text


def test_the_opening_of_one_run_and_of_runs_without_noise(fake_run, tmp_path):
    fake_run(tmp_path / "one")
    assert headline(study_of([tmp_path])).startswith("DiGN is right on")
    fake_run(tmp_path / "blur" / "b", "DiGN", families=("blur",))
    fake_run(tmp_path / "blur" / "c", "RSE", families=("blur",))
    study = study_of([tmp_path / "blur"])
    assert "under corruptions" in headline(study) and "<h1>" in build_page(study)
    fake_run(tmp_path / "clean" / "d", families=())
    assert "on clean images" in headline(study_of([tmp_path / "clean"]))
    assert "<h1>" in build_page(study_of([tmp_path / "clean"]))


def test_significance_is_spoken_of_where_there_are_seeds(grid_runs):
    assert re.search(r"over 3 seeds \(paired t-test, p [=<] 0\.\d+\)", " ".join(opening(study_of([grid_runs]))))


def test_warnings_are_on_the_page(fake_run, tmp_path):
    fake_run(tmp_path / "good")
    (fake_run(tmp_path / "rotten") / "results.json").write_text("{")
    page = build_page(study_of([tmp_path]))
    assert "rotten" in page and 'class="warnings"' in page


def test_configurations_of_every_run_are_on_the_page(demo_runs):
    page = build_page(study_of([demo_runs]))
    assert page.count("<details") == 4 and page.count("<dt>schedule</dt><dd>cosine</dd>") == 4


def test_where_images_lie_on_a_disk_is_not_on_the_page(fake_run, tmp_path):
    folder = fake_run(tmp_path / "own")
    about = {**json.loads((folder / "run.json").read_text()), "folder": "/home/somebody/photographs"}
    (folder / "run.json").write_text(json.dumps(about))
    page = build_page(study_of([tmp_path]))
    assert "abc1234" in page and "somebody" not in page


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


def test_only_real_pictures_are_shown(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    good = {"corruption": "fog", "severity": 3, "index": 1, "label": "1", "prediction": "2", "confidence": 50}
    images = [
        {**good, "png": ONE_PIXEL},
        {**good, "png": base64.b64encode(b"<svg onload=alert(1)>").decode()},
        {**good, "png": '"><script>'},
        {**good, "png": ONE_PIXEL, "confidence": "sure"},
        "nonsense",
    ]
    (folder / "examples.json").write_text(json.dumps({"images": images}))
    assert len(example_images(load_run(folder))) == 1


def test_training_curves_are_thinned_but_keep_their_ends(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a"))
    curve = loss_curve(run)
    assert 50 <= len(curve) <= 100 and curve[-1][0] == pytest.approx(12 - 1 / 25)
    losses = [record["loss"] for record in run.metrics if "loss" in record]
    assert curve[0][1] == pytest.approx(sum(losses[:3]) / 3)
    assert [epoch for epoch, _ in validation_curve(run)] == list(range(1, 13))


def test_a_reliability_diagram_has_a_bar_per_filled_bin_with_its_numbers(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a"))
    bins = run.clean.reliability()
    filled = [i for i, count in enumerate(bins["count"]) if count]
    drawn = reliability_diagram("title", run.clean, 8)
    assert drawn.count("data-tip") == len(filled)
    assert f"Accuracy\t{100 * bins['accuracy'][15]:.1f} %" in drawn


def test_several_models_have_their_own_panels(fake_run, tmp_path):
    for model in ("one", "two"):
        fake_run(tmp_path / f"{model}-a", "Standard", model=model)
        fake_run(tmp_path / f"{model}-b", "DiGN", model=model)
    page = build_page(study_of([tmp_path]))
    assert page.count("<h3>two</h3>") >= 4 and "on two" in headline(study_of([tmp_path])) + " on two"


def test_ticks_are_round_numbers_inside_the_range():
    assert nice_ticks(0, 100, 5) == [0, 20, 40, 60, 80, 100]
    assert nice_ticks(0.3, 1.1, 4) == [0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(5, 5) == [5]


def contrast(one: str, other: str) -> float:
    def luminance(color: str) -> float:
        return relative_luminance(*(int(color[i : i + 2], 16) for i in (1, 3, 5)))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_method_colors_stand_out_from_the_page_in_light_and_dark():
    for light, dark in ColorS:
        assert contrast(light, "#fbfaf7") >= 3 and contrast(dark, "#14161a") >= 4.5


# Machado, Oliveira and Fernandes 2009, complete color blindness, on linear RGB
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def lab(color: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a color as somebody with this vision sees it."""
    share = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(VISION[vision]) @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ seen / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("dark", [0, 1])
def test_the_methods_of_the_paper_are_told_apart_by_every_color_vision(vision, dark):
    seen = [lab(colors[dark], vision) for colors in ColorS[: len(METHOD_ORDER)]]
    distances = [np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)]
    assert min(distances) > 15  # 2 is just visible, side by side


def test_heat_map_text_is_readable_at_every_value_and_lighter_is_more():
    colors = [heat_color(value / 100) for value in range(101)]
    assert min(contrast(background, ink) for background, ink in colors) >= 4.5
    lightness = [contrast(background, "#000000") for background, _ in colors]
    assert lightness == sorted(lightness)


def test_study_and_page_agree_on_the_best(grid_runs):
    study = make_study(*load_runs([grid_runs]))
    assert headline(study).startswith("DiGN+AugMix keeps")


def test_images_of_the_same_number_from_other_splits_are_not_put_together(fake_run, tmp_path):
    example = {
        "corruption": "clean",
        "severity": 0,
        "index": 4,
        "prediction": "7",
        "confidence": 61.2,
        "png": ONE_PIXEL,
    }
    for title, split, label in (("Standard", "test", "1"), ("DiGN", "test", "1"), ("AT", "train", "1")):
        folder = fake_run(tmp_path / title, title)
        (folder / "examples.json").write_text(json.dumps({"images": [{**example, "label": label}]}))
        results = json.loads((folder / "results.json").read_text())
        results["evaluation"]["split"] = split
        (folder / "results.json").write_text(json.dumps(results))
    assert build_page(study_of([tmp_path])).count("<img") == 2


def test_a_page_does_not_say_where_things_lie_on_somebodys_disk(fake_run, tmp_path):
    folder = fake_run(
        tmp_path / "a", config={"data": "folder:/home/ann/photos", "init": "/home/ann/weights.safetensors"}
    )
    info = {"command": ["dign", "train", "folder:/home/ann/photos", "--out=/home/ann/run", "--init", "s3://bucket/x"]}
    (folder / "run.json").write_text(json.dumps(info))
    page = build_page(study_of([tmp_path]))
    assert "ann" not in re.findall(r"[a-z]+", page) and "folder:photos" in page and "s3://bucket/x" in page
