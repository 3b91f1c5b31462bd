import numpy as np
import torch

from dign.corruptions import corrupt
from dign.corruptions.streams import Streams
from dign.corruptions.weather import plasma_fractal


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
