from dign.core.sampling import spread_indices


def test_images_are_taken_at_equal_distances():
    assert spread_indices(10_000, 500) == list(range(0, 10_000, 20))
    assert spread_indices(5, 10) == [0, 1, 2, 3, 4]
    assert spread_indices(999, 500) == list(range(500)), "never more than wanted"
