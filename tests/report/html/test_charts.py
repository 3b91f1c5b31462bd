"""Charts: round ticks, names inside the chart, and the numbers for tooltips."""

import re
from itertools import pairwise

from dign.report.html.charts import LABEL_GAP, Axes, Series, end_label_room, line_chart, nice_ticks, tip_text


def test_ticks_are_round_numbers_inside_the_range():
    assert nice_ticks(0, 100, 5) == [0, 20, 40, 60, 80, 100]
    assert nice_ticks(0.3, 1.1, 4) == [0.4, 0.6, 0.8, 1.0]
    assert nice_ticks(5, 5) == [5]


def end_labels(chart):
    """(x, y, text) of the names at the ends of lines."""
    found = re.findall(r'<text class="s\d+ end" x="([\d.]+)" y="([\d.]+)">([^<]*)<', chart)
    return [(float(x), float(y), text) for x, y, text in found]


def lines_that_end_together(count, label="Method {}"):
    return [Series(label.format(i), i, [(0, 50), (5, 50 + 0.1 * i)]) for i in range(count)]


def draw(series):
    room = end_label_room([one.label for one in series])
    axes = Axes(460, 300, (0, 5), (0, 100), (12, room, 36, 44))
    return line_chart("title", axes, series, end_labels=True)


def test_names_of_lines_that_end_together_are_pushed_apart_in_their_order():
    labels = end_labels(draw(lines_that_end_together(8)))
    heights = sorted(y for _, y, _ in labels)
    assert len(labels) == 8 and all(b - a >= LABEL_GAP - 0.01 for a, b in pairwise(heights))
    assert heights[0] >= 12 and heights[-1] <= 300 - 36 + 4
    assert [text for _, _, text in sorted(labels, key=lambda one: -one[1])] == [f"Method {i}" for i in range(8)]


def test_a_line_that_ends_early_has_no_name_at_the_far_end():
    early = Series("early", 3, [(0, 70)])
    assert [text for _, _, text in end_labels(draw([*lines_that_end_together(1), early]))] == ["Method 0"]


def test_more_names_than_fit_are_left_to_the_legend():
    assert end_labels(draw(lines_that_end_together(25))) == []


def test_a_long_name_is_cut_and_stays_inside_the_chart():
    (_, _, text), *_ = end_labels(draw(lines_that_end_together(2, "a name {} that goes on for very much too long")))
    assert text.endswith("…") and 5 < len(text) < 25


def test_a_tab_in_a_name_does_not_become_a_field_of_the_tooltip():
    assert tip_text([(3, "a\tb", "1"), (None, "c", "")]) == "3\ta b\t1\n\tc\t"
