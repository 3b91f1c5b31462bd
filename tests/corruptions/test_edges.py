"""Edges, distances and equalization, against values worked out by hand and slow implementations."""

import heapq

import numpy as np
import pytest
import torch

from dign.corruptions import edges


def shortest_ways(marked: np.ndarray, limit: int) -> np.ndarray:
    lengths = {(0, 1): 65536, (1, 1): 91750, (1, 2): 143976}
    moves = [
        (sy * a, sx * b, length)
        for pair, length in lengths.items()
        for a, b in {pair, pair[::-1]}
        for sy in (-1, 1)
        for sx in (-1, 1)
    ]
    best = np.full(marked.shape, limit)
    queue = [(0, *place) for place in np.argwhere(marked).tolist()]
    while queue:
        length, row, column = heapq.heappop(queue)
        if length >= best[row, column]:
            continue
        best[row, column] = length
        for down, across, step in moves:
            y, x = row + down, column + across
            if 0 <= y < marked.shape[0] and 0 <= x < marked.shape[1]:
                heapq.heappush(queue, (length + step, y, x))
    return best


def test_edges_of_a_bright_square_are_its_outline() -> None:
    layer = torch.zeros((1, 12, 12), dtype=torch.uint8)
    layer[:, 4:9, 4:9] = 200
    found = edges.canny(layer)[0]
    assert not found[5:8, 5:8].any() and not found[:3].any() and not found[10:].any()
    assert found[4:9, 3:5].any(dim=1).all() and found[3:5, 4:9].any(dim=0).all()


def test_weak_edges_count_only_where_they_touch_strong_ones() -> None:
    layer = torch.zeros((2, 9, 16), dtype=torch.uint8)
    layer[:, 4:, :] = 20  # gradient 4 * 20 = 80: weak
    layer[1, 4:, 8:] = 100  # gradient 400: strong, and in one line with the weak part
    found = edges.canny(layer)
    assert not found[0].any()
    assert found[1, 3:5, 1:6].any(dim=0).all()


@pytest.mark.parametrize("size", [(9, 14), (20, 8)])
def test_distances_are_shortest_ways_of_chess_moves(size: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(4)
    marked = torch.rand((3, *size), generator=generator) < 0.04
    marked[2] = False
    found = edges.distance(marked, 20)
    for picture, result in zip(marked.numpy(), found.numpy(), strict=True):
        np.testing.assert_array_equal(result, shortest_ways(picture, 20 * 65536))


def test_equalizing_by_hand() -> None:
    # 16 pixels: 4 of value 2, 8 of 3, 4 of 7. Above the lowest there are 12, so 3 -> 8/12 * 255 and 7 -> 255.
    x = torch.tensor([2] * 4 + [3] * 8 + [7] * 4, dtype=torch.int32).view(1, 4, 4)
    assert edges.equalize(x, 21).flatten().unique().tolist() == [0, 170, 255]
    uniform = torch.full((1, 4, 4), 5, dtype=torch.int32)
    assert torch.equal(edges.equalize(uniform, 21), uniform)
