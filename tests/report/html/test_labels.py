"""Geometry of names: inside the chart, apart from each other."""

import math
import random
from itertools import combinations, pairwise

import pytest

from dign.report.html.labels import is_inside, overlap, place_beside, shorten, spread, text_width


def test_names_that_have_room_stay_where_they_are_wanted():
    assert spread([30.0, 10.0, 50.0], 0.0, 60.0, 12.0) == [30.0, 10.0, 50.0]


def test_names_at_the_lower_end_are_pushed_up_by_hand():
    # 59 moves down to 58 + 12, which is below 60: to 60, and 58 up to 60 - 12
    assert spread([58.0, 59.0], 0.0, 60.0, 12.0) == [48.0, 60.0]
    assert spread([60.0, 60.0, 60.0], 0.0, 60.0, 12.0) == [36.0, 48.0, 60.0]


def test_names_that_do_not_fit_are_not_placed():
    assert spread([1.0] * 7, 0.0, 60.0, 12.0) is None
    assert sorted(spread([1.0] * 6, 0.0, 60.0, 12.0)) == [0.0, 12.0, 24.0, 36.0, 48.0, 60.0]


@pytest.mark.parametrize("seed", range(20))
def test_spread_names_keep_their_order_their_distance_and_their_place(seed):
    draws = random.Random(seed)
    wanted = [draws.uniform(-20, 140) for _ in range(draws.randint(1, 9))]
    placed = spread(wanted, 0.0, 120.0, 13.0)
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    heights = [placed[i] for i in order]
    assert all(b - a >= 13.0 - 1e-9 for a, b in pairwise(heights))
    assert heights[0] >= -1e-9 and heights[-1] <= 120.0 + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_names_of_points_cover_no_point_no_other_name_and_no_frame(seed):
    draws = random.Random(seed)
    frame = (48.0, 2.0, 440.0, 280.0)
    points = [(draws.uniform(50, 438), draws.uniform(4, 278)) for _ in range(14)]
    texts = [draws.choice(("DiGN", "DiGN w/o CR", "DiGN (sigma_max 0.5)", "Standard")) for _ in points]
    boxes = [box for box in place_beside(points, texts, frame) if box is not None]
    assert len(boxes) >= 7
    assert all(is_inside(box, frame) for box in boxes)
    assert not any(overlap(a, b) for a, b in combinations(boxes, 2))
    marks = [(x - 7, y - 7, x + 7, y + 7) for x, y in points]
    assert not any(overlap(box, mark) for box in boxes for mark in marks)


def test_a_name_is_nearest_to_its_own_point():
    points = [(90.0, 100.0), (88.0, 112.0)]  # left of the second is beside the first as well
    texts, frame = ["Standard", "DiGN"], (0.0, 0.0, 110.0, 125.0)
    for (x, y), other, box in zip(points, reversed(points), place_beside(points, texts, frame), strict=True):
        if box is not None:
            near, far = (_distance(box, point) for point in ((x, y), other))
            assert near < far
    assert place_beside(points, texts, frame)[0] is not None


def _distance(box, point):
    nearest = [min(max(value, low), high) for value, low, high in zip(point, box[:2], box[2:], strict=True)]
    return math.dist(nearest, point)


def test_points_on_one_spot_get_as_many_names_as_there_is_room_for():
    boxes = place_beside([(100.0, 100.0)] * 12, ["Standard"] * 12, (0.0, 0.0, 200.0, 200.0))
    found = [box for box in boxes if box is not None]
    assert 4 <= len(found) < 12 and not any(overlap(a, b) for a, b in combinations(found, 2))


def test_a_name_is_cut_to_its_width():
    for width in (20.0, 60.0, 150.0):
        assert text_width(shorten("An average name of a method (weight 1.0)", width)) <= width
    assert shorten("short", 100.0) == "short"
