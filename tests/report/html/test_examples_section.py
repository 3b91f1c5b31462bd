"""Example images: only pictures, and the most instructive ones first."""

import base64
import json

from dign.report.analysis.study import Group
from dign.report.html import examples_section
from dign.report.html.examples_section import PNG, Answer, Picture, example_images, pick_instructive
from dign.report.html.page import build_page
from dign.report.load import load_run
from dign.report.make import study_of

ONE_PIXEL = base64.b64encode(PNG + b"rest of a picture").decode()


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


def picture(index, label, *answers):
    """A picture with answers as (right, confidence in percent)."""
    group = Group("DiGN", "DiGN", "model", ())
    made = [Answer(group, "x", f"{sure:.0f}", right, sure / 100) for right, sure in answers]
    return Picture(index, "fog", 3, label, "", made)


def test_disagreement_teaches_more_than_being_sure_and_wrong_and_that_more_than_being_right():
    split = picture(0, "a", (True, 60), (False, 50))
    sure = picture(1, "a", (False, 99), (False, 70))
    unsure = picture(2, "a", (False, 30), (False, 20))
    right = picture(3, "a", (True, 99), (True, 99))
    assert pick_instructive([right, unsure, sure, split], 4) == [split, sure, unsure, right]


def test_every_class_is_shown_before_one_is_shown_twice():
    many = [picture(index, "a", (True, 90), (False, 90)) for index in range(10)]
    few = [picture(10, "b", (True, 99)), picture(11, "c", (True, 99))]
    assert {one.label for one in pick_instructive([*many, *few], 3)} == {"a", "b", "c"}
    assert [one.label for one in pick_instructive([*many, *few], 5)].count("a") == 3


def test_another_image_comes_before_the_same_image_under_another_corruption():
    same = [picture(0, "a", (False, sure)) for sure in (90, 80, 70)]
    other = picture(1, "a", (False, 10))
    assert other in pick_instructive([*same, other], 2)


def test_the_same_image_comes_before_another_one_that_all_get_right():
    same = [picture(0, "a", (False, sure)) for sure in (90, 80)]
    boring = picture(1, "a", (True, 99))
    assert pick_instructive([boring, *same], 2) == same


def test_what_is_not_shown_first_can_be_unfolded(fake_run, tmp_path):
    entry = {"corruption": "fog", "severity": 3, "label": "1", "prediction": "2", "confidence": 50, "png": ONE_PIXEL}
    folder = fake_run(tmp_path / "a")
    (folder / "examples.json").write_text(json.dumps({"images": [{**entry, "index": i} for i in range(30)]}))
    page = build_page(study_of([tmp_path]))
    assert page.count("<img") == 30 and "6 more images, by corruption and severity" in page


def test_instructive_images_are_found_under_all_corruptions_however_many_images_there_are(
    fake_run, tmp_path, monkeypatch
):
    monkeypatch.setattr(examples_section, "IMAGE_BUDGET", 30 * len(ONE_PIXEL))
    entry = {"severity": 3, "label": "1", "prediction": "1", "confidence": 99, "png": ONE_PIXEL}
    images = [{**entry, "corruption": "brightness", "index": i} for i in range(40)]
    images.append({**entry, "corruption": "zoom_blur", "index": 50, "prediction": "2"})
    (fake_run(tmp_path / "a") / "examples.json").write_text(json.dumps({"images": images}))
    (part,) = examples_section.examples_parts(study_of([tmp_path]))
    assert part.content["first"][0].corruption == "zoom_blur"
    assert len(part.content["first"]) == 24 and len(part.content["rest"]) == 6 and part.content["left_out"] == 11


def test_the_second_class_is_shown_where_it_is_known_and_makes_sense(fake_run, tmp_path):
    entry = {"corruption": "fog", "severity": 3, "label": "1", "prediction": "2", "confidence": 50, "png": ONE_PIXEL}
    seconds = [{}, {"second": "7", "second_confidence": 12.3}, {"second": ["x"], "second_confidence": 12.3}]
    seconds += [{"second": "7", "second_confidence": "all"}]
    folder = fake_run(tmp_path / "a")
    images = [{**entry, "index": index, **second} for index, second in enumerate(seconds)]
    (folder / "examples.json").write_text(json.dumps({"images": images}))
    assert [one["second"] for one in example_images(load_run(folder))] == ["", "7 12 %", "", ""]
    assert "DiGN: 2 50 %, then 7 12 %" in build_page(study_of([tmp_path]))
