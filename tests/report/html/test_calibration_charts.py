"""Reliability diagrams and the scatter of accuracy against calibration."""

import re

from dign.report.html.calibration_charts import Spot, reliability_diagram, scatter
from dign.report.load import load_run


def test_a_reliability_diagram_has_a_bar_per_filled_bin_with_its_numbers(fake_run, tmp_path):
    run = load_run(fake_run(tmp_path / "a"))
    bins = run.results.clean.calibration.reliability()
    filled = [i for i, count in enumerate(bins["count"]) if count]
    drawn = reliability_diagram("title", run.results.clean.calibration, 8)
    assert drawn.count("data-tip") == len(filled)
    assert f"Accuracy\t{100 * bins['accuracy'][15]:.1f} %" in drawn


def axis_numbers(chart):
    return [float(text) for text in re.findall(r'<text class="tick"[^>]*>([^<]*)<', chart)]


def test_a_scatter_of_models_that_hardly_differ_spans_ten_points_and_five():
    spots = [Spot(name, i, 98.0 + 0.1 * i, 1.0 + 0.1 * i, []) for i, name in enumerate(("A", "B"))]
    numbers = axis_numbers(scatter("title", spots, "mCA-N", "ECE-N"))
    assert {90.0, 100.0, 0.0, 5.0} <= set(numbers) and max(numbers) == 100.0


def test_every_spot_keeps_its_mark_and_numbers_where_its_name_has_no_room():
    spots = [Spot(f"Method {i}", i, 50.0, 5.0, []) for i in range(15)]
    chart = scatter("title", spots, "mCA-N, %", "ECE-N, %")
    assert chart.count("data-tip") == 15 and 1 <= chart.count(' end"') < 15
