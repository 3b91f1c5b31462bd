"""Extreme eigenvalues against the full spectrum."""

import pytest
import torch
from torch import nn

from dign.landscape import (
    largest_eigenvalue,
)
from dign.landscape.lanczos import extreme_eigenvalues


@pytest.mark.parametrize("network", ["softmax_regression", "relu_network", "smooth_network"])
def test_extreme_eigenvalues_against_the_full_spectrum(network, batch, request, full_hessians) -> None:
    model = request.getfixturevalue(network)
    values = torch.linalg.eigvalsh(full_hessians(model, *batch))
    found = largest_eigenvalue(model, *batch, iterations=12, tolerance=1e-10)
    torch.testing.assert_close(found.largest, values[:, -1])
    torch.testing.assert_close(found.smallest, values[:, 0], atol=1e-9, rtol=1e-7)
    torch.testing.assert_close(found.spectral_norm, values.abs().amax(1))
    assert bool((found.largest_residual <= 1e-9 * found.largest).all())


def test_the_residual_of_an_unfinished_iteration_bounds_the_error(smooth_network, batch, full_hessians) -> None:
    values = torch.linalg.eigvalsh(full_hessians(smooth_network, *batch))
    found = largest_eigenvalue(smooth_network, *batch, iterations=3, tolerance=0)
    assert found.iterations == 3
    assert bool((found.largest_residual > 1e-6).all())
    nearest = (values - found.largest[:, None]).abs().amin(1)
    assert bool((nearest <= found.largest_residual).all())
    assert bool((found.largest <= values[:, -1] + 1e-12).all()), "a Ritz value never exceeds the largest eigenvalue"


def test_a_flat_loss_has_eigenvalue_zero(softmax_regression, batch) -> None:
    with torch.no_grad():
        softmax_regression[1].weight.zero_()
    found = largest_eigenvalue(softmax_regression, *batch)
    assert bool((found.largest == 0).all()) and bool((found.largest_residual == 0).all())


def test_a_spectrum_of_negative_values_is_not_mistaken_for_zero() -> None:
    """L = -|x|^2 / 2 near 0 has H = -1 in every direction: the basis is complete after one step."""

    class Bowl(nn.Module):
        def forward(self, x):
            squares = x.flatten(1).square().sum(1)
            return torch.stack([squares, torch.zeros_like(squares)], 1)

    x, y = torch.zeros(2, 3, 2, 2, dtype=torch.float64), torch.tensor([0, 0])
    found = largest_eigenvalue(Bowl(), x, y, iterations=6)
    torch.testing.assert_close(found.largest, torch.full((2,), -1.0, dtype=torch.float64))


def test_both_ends_of_the_spectrum_have_converged_before_it_stops() -> None:
    """The largest eigenvalue stands alone and is found at once, the smallest is the edge of a dense band."""
    values = torch.cat([torch.linspace(-1.0, 0.0, 398), torch.tensor([-1.05, 2.0])]).double()
    like = torch.zeros(3, 400, dtype=torch.float64)

    class Diagonal:
        def __init__(self) -> None:
            self.like = like

        def __matmul__(self, v):
            return v * values

    found = extreme_eigenvalues(Diagonal(), iterations=200, tolerance=1e-4)
    assert bool((found.smallest_residual <= 1e-4 * 2.0).all())
    torch.testing.assert_close(found.smallest, torch.full((3,), -1.05).double(), atol=1e-3, rtol=0)
