"""The playground's answer as HTML."""

from dataclasses import replace
from pathlib import Path

import torch

from dign.app.answers import Examples
from dign.app.cards import answer, stylesheet
from dign.evaluation.result_info import EvaluationInfo, RunInfo
from dign.evaluation.summarize import CLEAN, make_results
from dign.metrics import Calibration
from dign.report.load import Run
from dign.report.palette import THEME, color_of

NO_EXAMPLES = Examples(torch.empty(0, 3, 1, 1, dtype=torch.uint8), [], "none")
HOSTILE = "<img src=x onerror=alert(1)>{{7*7}}${1+1}"


def test_the_answer_escapes_names_and_shows_each_model(gray, make_player):
    html = answer([make_player(classes=("dark", HOSTILE)), make_player(slot=3)], NO_EXAMPLES, str(gray), "fog", 0, 0)
    assert "<img src=x" not in html and "&lt;img src=x" in html
    assert html.count('class="model') == 2 and html.count("<figure") == 1 and "True class" not in html
    assert "dign evaluate x" in html and "Drop in an image" in answer([make_player()], NO_EXAMPLES, None, "fog", 0, 0)


def test_the_answer_draws_the_calibration(gray, make_player):
    calibration = Calibration()
    calibration.update(torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 0]))
    run = RunInfo("x", "dign", "DiGN", "tinynet", "digits")
    measured = Run(Path("runs/x"), make_results({CLEAN: calibration}, run, EvaluationInfo(), "ab"))
    each = replace(make_player(), measured=measured, missing="")
    html = answer([each], NO_EXAMPLES, str(gray), "fog", 0, 0)
    assert "<svg" in html and "accuracy 50.0 %, calibration error (ECE) 45.0 %, 2 images" in html


def test_a_file_that_is_not_an_image_gives_one_sentence_without_its_path(tmp_path, make_player):
    path = tmp_path / "text.png"
    path.write_text("not a picture")
    html = answer([make_player()], NO_EXAMPLES, str(path), "fog", 2, 0)
    assert "The image cannot be read: it is not an image in a known format." in html and str(tmp_path) not in html


def test_the_page_has_the_report_s_colors_and_its_charts(make_player):
    css = stylesheet([make_player(slot=8)])
    for dark, place in ((0, ".gradio-container"), (1, ".dark .gradio-container")):
        assert f"{place} .s8{{--c:{color_of(8, bool(dark))}}}" in css
        assert f"{place}{{--ground:{THEME['ground'][dark]};" in css
    assert ".chart .line {" in css
