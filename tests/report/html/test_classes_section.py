"""Accuracy by class and confusion matrices on the page."""

import re

from fake_runs import add_confusion

from dign.report.html.classes_section import MOST, class_parts, confusion_chart
from dign.report.html.page import build_page
from dign.report.make import study_of


def cards(study):
    (part,) = class_parts(study)
    return part.content


def test_there_is_a_tab_only_where_results_have_matrices(fake_run, tmp_path):
    folder = fake_run(tmp_path / "a")
    assert class_parts(study_of([tmp_path])) == [] and 'id="classes"' not in build_page(study_of([tmp_path]))
    fake_run(tmp_path / "b", "Standard")
    add_confusion(folder, ["cat", "dog"])
    study = study_of([tmp_path])
    assert [card.label for card in cards(study)] == ["DiGN"] and 'id="classes"' in build_page(study)


def test_bars_are_the_accuracies_of_the_classes_in_their_order(fake_run, tmp_path):
    add_confusion(fake_run(tmp_path / "a"), ["dog", "cat", "owl"])
    study = study_of([tmp_path])
    (card,) = cards(study)
    clean, worst = study.runs[0].results.confusion
    assert [name for name, _ in card.rows] == ["dog", "cat", "owl"] and card.left_out == 0
    for index, (_, bars) in enumerate(card.rows):
        assert [bar.text for bar in bars] == [f"{one.accuracy_by_class[index]:.1f}" for one in (clean, worst)]


def test_a_class_without_images_has_no_bar(fake_run, tmp_path):
    add_confusion(fake_run(tmp_path / "a", images=2), ["dog", "cat", "owl"])
    (card,) = cards(study_of([tmp_path]))
    assert [bar.width for bar in card.rows[2][1]] == [None, None] and card.rows[2][1][0].text == "–"


def test_a_matrix_has_a_cell_for_each_pair_and_the_percentage_of_its_row():
    chart = confusion_chart("Confusion", [[3, 1], [0, 0]], ["cat", "dog"], 0)
    assert chart.count('class="hit"') == 4
    assert re.findall(r'class="cell"[^>]*>(\d+)<', chart) == ["75", "25"]
    assert chart.count('class="right"') == chart.count('class="wrong"') == 1
    assert "Taken for dog\t25.0 %" in chart and "1 of 4" in chart


def test_of_very_many_classes_the_weakest_and_the_most_confused_pairs_are_listed(fake_run, tmp_path):
    add_confusion(fake_run(tmp_path / "a", images=2000), [f"class {index}" for index in range(100)])
    study = study_of([tmp_path])
    (card,) = cards(study)
    assert len(card.rows) == MOST and card.left_out == 80
    clean, worst = (matrix.accuracy_by_class for matrix in study.runs[0].results.confusion)
    lowest = sorted(zip(worst, clean, strict=True))[:MOST]
    shown = [(bars[1].text, bars[0].text) for _, bars in card.rows]
    assert shown == [(f"{under:.1f}", f"{before:.1f}") for under, before in lowest]
    assert all(one.chart is None and len(one.pairs) == MOST for one in card.shown)
    assert "80 more are left out" in build_page(study)


def test_names_of_classes_stay_text(fake_run, tmp_path):
    evil = '<script>alert(1)</script>"'
    for count in (2, 30):
        add_confusion(fake_run(tmp_path / str(count), seed=count), [evil, *map(str, range(1, count))])
        page = build_page(study_of([tmp_path / str(count)]))
        assert evil not in page and page.count("<script>") == 1 and "&lt;script&gt;" in page
