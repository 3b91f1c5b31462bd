import heapq

import numpy as np
import pytest
import torch

from dign.corruptions import corrupt, edges
from dign.corruptions.streams import Streams
from dign.corruptions.weather import plasma_fractal


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


def test_equalizing_by_hand() -> None:
    # 16 pixels: 4 of value 2, 8 of 3, 4 of 7. Above the lowest there are 12, so 3 -> 8/12 * 255 and 7 -> 255.
    x = torch.tensor([2] * 4 + [3] * 8 + [7] * 4, dtype=torch.int32).view(1, 4, 4)
    assert edges.equalize(x, 21).flatten().unique().tolist() == [0, 170, 255]
    uniform = torch.full((1, 4, 4), 5, dtype=torch.int32)
    assert torch.equal(edges.equalize(uniform, 21), uniform)


def test_the_fractal_of_side_two_by_hand() -> None:
    """One round: the center is 0 + 100^2 u0, the points beside it have the mean of two corners and two centers."""
    u = Streams(0, "fog", torch.arange(6)).uniform(3) * 2 - 1
    center = 1e4 * u[:, 0]
    top, side = center / 2 + 1e4 * u[:, 1], center / 2 + 1e4 * u[:, 2]
    grid = torch.stack([torch.zeros(6), top, side, center], dim=1)
    grid = grid - grid.amin(1, keepdim=True)
    expected = (grid / grid.amax(1, keepdim=True)).view(6, 2, 2)
    found = plasma_fractal((2, 2), 3.0, Streams(0, "fog", torch.arange(6)))
    torch.testing.assert_close(found, expected)


def test_the_fractal_follows_a_slow_diamond_square() -> None:
    side, decay = 16, 2.5
    found = plasma_fractal((side, side), decay, Streams(0, "fog", torch.arange(1)))[0].double().numpy()
    u = (Streams(0, "fog", torch.arange(1)).uniform(side * side - 1)[0].double() * 2 - 1).numpy()
    grid, step, wobble, start = np.zeros((side, side)), side, 100.0, 0
    while step >= 2:
        half, cells = step // 2, side // step
        places = [(y * step, x * step) for y in range(cells) for x in range(cells)]
        for kind, neighbors in (
            ((half, half), ((-half, -half), (-half, half), (half, -half), (half, half))),
            ((0, half), ((-half, 0), (half, 0), (0, -half), (0, half))),
            ((half, 0), ((-half, 0), (half, 0), (0, -half), (0, half))),
        ):
            for number, (y, x) in enumerate(places):
                y, x = y + kind[0], x + kind[1]
                mean = np.mean([grid[(y + a) % side, (x + b) % side] for a, b in neighbors])
                grid[y, x] = mean + wobble**2 * u[start + number]
            start += cells**2
        step, wobble = half, wobble / decay
    grid = (grid - grid.min()) / (grid.max() - grid.min())
    np.testing.assert_allclose(found, grid, atol=1e-5)


def test_fog_over_black_is_the_fractal_scaled_by_the_brightest_value() -> None:
    """Severity 5 adds 1.5 times a fractal in [0,1] and scales by 1 / (1 + 1.5) if the brightest value is 1."""
    image = torch.zeros((3, 32, 32), dtype=torch.uint8)
    image[:, 5, 5] = 255
    made = corrupt(image, "fog", 5, profile="cifar")
    made[:, 5, 5] = 0
    assert int(made.max()) in (151, 152, 153) and int((made < 20).sum()) > 3
    assert torch.equal(made[0], made[1]) and torch.equal(made[0], made[2])


def test_snow_only_brightens_a_dark_picture_and_its_flakes_are_symmetric() -> None:
    dark = torch.full((2, 3, 24, 40), 30, dtype=torch.uint8)
    made = corrupt(dark, "snow", 4)
    assert (made >= dark).all()
    assert int((made.int() - made.flip(2, 3).int()).abs().max()) <= 1


def test_mud_is_brown_and_water_pale() -> None:
    gray = torch.full((8, 3, 32, 32), 128, dtype=torch.uint8)
    mud = corrupt(gray, "spatter", 5, profile="cifar")
    spots = (mud != gray).any(dim=1)
    assert torch.equal(mud.permute(0, 2, 3, 1)[spots].min(dim=0).values, torch.tensor([63, 42, 20], dtype=torch.uint8))
    water = corrupt(gray, "spatter", 2, profile="cifar")
    assert (water >= 127).all() and (water[:, 1].int() >= water[:, 0].int()).all()
