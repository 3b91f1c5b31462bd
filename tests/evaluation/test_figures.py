"""Results as a figure."""

import pytest


def test_a_figure_shows_accuracy_by_severity_and_two_reliability_diagrams(results):
    severities, clean, corrupted = results.plot().axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in severities.lines}
    assert drawn == {"noise": [[0, 90], [1, 35]], "weather": [[0, 90], [3, 70]]}
    assert [text.get_text() for text in severities.get_xticklabels()] == ["clean", "1", "3"]
    assert max(bar.get_height() for bar in clean.patches) == pytest.approx(90)
    assert max(bar.get_height() for bar in corrupted.patches) == pytest.approx(65), "gaussian_noise is left out"
