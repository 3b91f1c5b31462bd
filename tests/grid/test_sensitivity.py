"""The sensitivity study: its points and its reference, from summaries made by hand."""

import math

import pytest
from fake_sensitivity import GRID, accuracy, make_study, summary

from dign.grid.plan import make_plan
from dign.grid.sensitivity import make_sensitivity, studies_of


@pytest.fixture
def study():
    return make_study()


def test_points_are_means_and_population_deviations_over_seeds(study):
    point = study.at(**{"dign.sigma_max": 0.1, "dign.weight": 1.0})
    assert point.by_seed["mca_n"] == {0: 78, 1: 80}
    assert point.mean("mca_n") == 79 and point.std("mca_n") == 1
    assert math.isnan(point.mean("mca")), "of noise alone mCA is mCA-N again"
    assert study.best.values == (0.2, 0.2)
    assert len(study.points) == 6


def test_what_is_not_varied_stays_at_its_published_value(study):
    assert study.reference == {"dign.sigma_max": 0.2, "dign.weight": 0.2}
    tiny = make_plan({**GRID, "data": "tiny-imagenet"})
    runs = [(run, summary(accuracy(run))) for run in tiny.runs]
    assert make_sensitivity("tiny", runs).reference["dign.sigma_max"] == 0.2, "0.6 is published, but was not run"


def test_a_grid_without_numeric_lists_is_not_a_study(tmp_path):
    plan = make_plan({"data": "digits", "seed": [0, 1], "schedule": ["step", "cosine"]})
    assert studies_of(plan, tmp_path) == []
