import math

import pytest
import torch

from dign.augment.geometry import rotation, sample, shear, shift, source_positions, warp


def test_warp_samples_where_the_matrix_says():
    x = torch.arange(20.0).view(1, 1, 4, 5)
    shift = torch.tensor([[[1.0, 0, 1], [0, 1, -2]]])  # one column to the right, two rows up
    expected = torch.zeros(4, 5)
    expected[2:, :4] = x[0, 0, :2, 1:]
    assert torch.equal(warp(x, shift, mode="nearest")[0, 0], expected)


def test_a_quarter_turn_is_rot90():
    x = torch.rand(2, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    for mode in ("nearest", "bilinear"):
        turned = warp(x, rotation(torch.tensor([90.0, -90.0])), mode=mode)
        torch.testing.assert_close(turned, torch.stack((x[0].rot90(1, (-2, -1)), x[1].rot90(-1, (-2, -1)))))


def test_the_identity_leads_every_pixel_to_its_own_center():
    positions = source_positions(rotation(torch.zeros(1)), (2, 4))[0]
    assert positions[0, :, 0].tolist() == pytest.approx([-0.75, -0.25, 0.25, 0.75])
    assert positions[:, 0, 1].tolist() == pytest.approx([-0.5, 0.5])


def test_a_bilinear_sample_between_four_pixels_is_their_mean_and_the_border_goes_on():
    x = torch.tensor([[[[1.0, 2.0], [3.0, 6.0]]]])
    assert sample(x, torch.zeros(1, 1, 1, 2)).item() == 3.0
    far = torch.full((1, 1, 1, 2), 5.0)
    assert sample(x, far).item() == 0 and sample(x, far, padding="border").item() == 6.0


def test_a_shear_leaves_the_upper_edge_where_it_is():
    """The matrix counts from the center: at the top, a position of -height/2, nothing is added."""
    (matrix,) = shear(torch.tensor([0.3]), torch.tensor([0.0]), (8, 8))
    top, bottom = (matrix @ torch.tensor([0.0, row, 1.0]) for row in (-4.0, 4.0))
    assert top.tolist() == pytest.approx([0, -4], abs=1e-6) and bottom.tolist() == pytest.approx([0.3 * 8, 4])


def test_shifts_and_rotations_compose_as_matrices_do():
    angle = torch.tensor([30.0])
    assert rotation(angle)[0, :, :2].det().item() == pytest.approx(1)
    assert rotation(angle)[0, 0, 0].item() == pytest.approx(math.cos(math.pi / 6))
    assert shift(torch.tensor([2.0]), torch.tensor([-1.0]))[0].tolist() == [[1, 0, 2], [0, 1, -1]]
