"""Flips and distances of rankings, against the published definition."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dign.metrics.stability import flips, top_distance


def published_distance(first: np.ndarray, second: np.ndarray) -> int:
    """By sigma = tau(x) o tau(x')^-1 and sums of indicators, class by class."""
    ranks = [np.argsort(np.argsort(-scores, kind="stable")) + 1 for scores in (first, second)]
    by_rank = np.argsort(ranks[0])
    total = 0
    for i in range(1, min(5, len(first)) + 1):
        sigma = ranks[1][by_rank[i - 1]]
        for j in range(min(i, sigma) + 1, max(i, sigma) + 1):
            total += 1 <= j - 1 <= 5
    return total


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 12), st.integers(0, 2**31))
def test_the_distance_is_the_published_one(classes, seed):
    random = np.random.default_rng(seed)
    first, second = (random.permuted(np.arange(classes))[None].astype(float) for _ in range(2))
    made = top_distance(torch.from_numpy(first), torch.from_numpy(second))
    assert made.tolist() == [published_distance(first[0], second[0])]


def test_the_order_beyond_the_first_five_does_not_count():
    scores = torch.arange(10.0).flip(0)[None]
    other = scores.clone()
    other[0, 5:] = other[0, 5:].flip(0)
    assert top_distance(scores, other).tolist() == [0] and flips(scores, other).tolist() == [False]
    assert top_distance(scores, scores[:, [1, 0, *range(2, 10)]]).tolist() == [2]
