"""The curves: as high as the rows say, with the published ones where they belong."""

import pytest

from dign.certification.figure import draw_certificates, read_published


def result(data):
    rows = [{"radius": radius, "correct": correct} for radius, correct in ((0.5, True), (0.2, True), (0.9, False))]
    return {"rows": rows, "images": 3, "plan": {"sigma": 0.25}, "run": {"name": "a $run", "data": data}}


def test_a_curve_starts_at_the_share_of_certified_images():
    (axes,) = draw_certificates([result("digits")]).axes
    (line,) = axes.lines
    assert max(line.get_ydata()) == pytest.approx(200 / 3) and max(line.get_xdata()) == 0.5


def test_published_curves_are_drawn_for_cifar10_at_the_same_sigma():
    (axes,) = draw_certificates([result("cifar10")]).axes
    published = [curve for curve in read_published()["curves"] if curve["sigma"] == 0.25]
    assert len(published) >= 4 and len(axes.lines) == 1 + len(published)


def test_an_attack_is_drawn_above_the_certificates():
    attacked = result("digits")
    for row, norm in zip(attacked["rows"], (0.7, 0.3, None), strict=True):
        row["attack"] = norm
    (axes,) = draw_certificates([attacked]).axes
    _, line = axes.lines
    assert list(line.get_xdata()) == [0, 0.3, 0.7]
    assert list(line.get_ydata()) == pytest.approx([200 / 3, 100 / 3, 0])
