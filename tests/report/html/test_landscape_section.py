"""The landscape panels: whose mean a line is, what its band is, and that the page says so."""

import json

import pytest

from dign.report.html.landscape_section import PANELS, Curve, group_series, read_curve, what_is_drawn
from dign.report.html.page import build_page
from dign.report.load import load_run
from dign.report.make import study_of


@pytest.fixture
def measured(fake_run, tmp_path):
    """A run folder with a landscape whose panels all have the same means."""

    def make(title, seed, means=None, errors=None, radii=(1, 2)):
        folder = fake_run(tmp_path / f"{title}-{seed}", title, seed)
        if means is not None:
            panel = {"mean": means} | ({"standard_error": errors} if errors else {})
            model = {"images": 50, "panels": dict.fromkeys(PANELS, panel)}
            (folder / "landscape.json").write_text(json.dumps({"settings": {"radii": list(radii)}, "models": [model]}))
        return folder

    make.folder = tmp_path
    return make


def test_a_curve_is_read_with_its_errors(measured):
    run = load_run(measured("DiGN", 0, [0.1, 0.2], [0.01, 0.02]))
    assert read_curve(run, "accuracy") == Curve((1.0, 2.0), (0.1, 0.2), (0.01, 0.02), 50)


def test_one_seed_has_the_band_over_images_that_dign_landscape_draws(measured):
    (group,) = study_of([measured("DiGN", 0, [0.1, 0.2], [0.01, 0.02])]).groups
    series = group_series(group, "first_order")
    assert series.points == [(1.0, 0.1), (2.0, 0.2)]
    assert series.spread == pytest.approx([0.0196, 0.0392])
    assert what_is_drawn([group]) == "DiGN: one seed, band 95 % confidence over its 50 images."


def test_several_seeds_have_the_band_over_seeds(measured):
    for seed, means in enumerate([[1.0, 2.0], [3.0, 2.0], [5.0, 2.0]]):
        measured("DiGN", seed, means, [9.0, 9.0])
    (group,) = study_of([measured.folder]).groups
    series = group_series(group, "accuracy")
    assert series.points == [(1.0, 3.0), (2.0, 2.0)]
    assert series.spread == pytest.approx([(8 / 3) ** 0.5, 0.0])  # of 1, 3 and 5: the population's, as in all tables
    assert what_is_drawn([group]) == "DiGN: mean of 3 of 3 seeds, band ± one standard deviation over seeds."


def test_the_page_says_how_many_seeds_have_a_landscape(measured):
    for seed in range(3):
        measured("DiGN", seed, [0.1, 0.2] if seed < 2 else None, [0.01, 0.02])
    measured("DiGN", 3, [0.1, 0.2], radii=(1, 3))
    measured("Standard", 0, [0.3, 0.4])
    measured("RSE", 0)
    measured("AT", 0)
    page = build_page(study_of([measured.folder]))
    assert (
        "Standard: one seed, no band. AT, RSE: no landscape was measured. DiGN: mean of 2 of 4 seeds (the others have "
        "no landscape, or one at other radii), band ± one standard deviation over seeds."
    ) in page


def test_bands_lie_inside_their_panel(measured):
    page = build_page(study_of([measured("DiGN", 0, [0.1, 0.2], [0.01, 0.1])]))
    top = page.split('id="landscape"')[1]
    assert top.count('class="band"') == 4 and "0.2 ± 0.2" in top


@pytest.mark.parametrize(
    "landscape",
    [
        {},
        {"settings": 3},
        {"settings": {"radii": [1]}, "models": []},
        {"settings": {"radii": [1]}, "models": [3]},
        {"settings": {"radii": []}, "models": [{"panels": {"accuracy": {"mean": []}}}]},
        {"settings": {"radii": [1]}, "models": [{"panels": {"accuracy": {"mean": [1, 2]}}}]},
        {"settings": {"radii": [1]}, "models": [{"panels": {"accuracy": {"mean": [1], "standard_error": ["x"]}}}]},
        {"settings": {"radii": [1]}, "models": [{"panels": {"accuracy": {"mean": [1e999]}}}]},
    ],
)
def test_a_strange_landscape_is_left_out(fake_run, tmp_path, landscape):
    folder = fake_run(tmp_path / "a")
    (folder / "landscape.json").write_text(json.dumps(landscape))
    assert 'id="landscape"' not in build_page(study_of([folder]))
