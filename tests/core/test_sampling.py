from itertools import pairwise

from dign.core.sampling import spread_indices


def test_images_are_taken_at_equal_distances():
    assert spread_indices(10_000, 500) == list(range(0, 10_000, 20))
    assert spread_indices(5, 10) == [0, 1, 2, 3, 4]
    assert spread_indices(5, 3) == [0, 1, 3]


def test_images_reach_to_the_end_where_the_distance_is_not_a_whole_number():
    chosen = spread_indices(1500, 1000)
    assert len(chosen) == len(set(chosen)) == 1000
    assert chosen[-1] == 1498 and max(b - a for a, b in pairwise(chosen)) == 2
