"""The Fisher matrix of the input and the divergence under noise, against closed forms."""

import pytest
import torch

from dign.core.errors import UserError
from dign.landscape import (
    diverse_noise_divergence,
    fisher,
    fisher_trace,
    gradient_norms,
    image_losses,
    noise_divergence,
    sampled_fisher_trace,
)

NETWORKS = ["softmax_regression", "relu_network", "smooth_network"]


def trace(matrices: torch.Tensor) -> torch.Tensor:
    return matrices.diagonal(dim1=1, dim2=2).sum(1)


@pytest.mark.parametrize("network", NETWORKS)
def test_exact_trace_against_the_jacobian(network, batch, request, full_fishers) -> None:
    model = request.getfixturevalue(network)
    torch.testing.assert_close(fisher_trace(model, batch[0]), trace(full_fishers(model, batch[0])))


@pytest.mark.parametrize("network", NETWORKS)
def test_sampled_trace_is_unbiased(network, batch, request, full_fishers) -> None:
    model = request.getfixturevalue(network)
    estimate = sampled_fisher_trace(model, batch[0], draws=4000)
    error = (estimate.value - trace(full_fishers(model, batch[0]))).abs()
    assert bool((error < 4.5 * estimate.standard_error).all())


@pytest.mark.parametrize("network", NETWORKS)
def test_products_are_those_of_the_matrix(network, batch, request, full_fishers) -> None:
    model = request.getfixturevalue(network)
    x = batch[0]
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(3), dtype=x.dtype)
    with fisher(model, x) as g:
        product = (g @ v).flatten(1)
    torch.testing.assert_close(product, (full_fishers(model, x) @ v.flatten(1)[:, :, None])[:, :, 0])


def test_proposition_1_holds_for_piecewise_linear_networks_only(
    relu_network, smooth_network, batch, full_hessians, full_fishers
) -> None:
    x, y = batch
    torch.testing.assert_close(full_hessians(relu_network, x, y), full_fishers(relu_network, x))
    difference = full_hessians(smooth_network, x, y) - full_fishers(smooth_network, x)
    assert float(difference.norm() / full_fishers(smooth_network, x).norm()) > 0.05


@pytest.mark.parametrize("network", NETWORKS)
def test_the_gradient_is_bounded_by_the_trace(network, batch, request) -> None:
    """p_y ||g||^2 is one of the terms of Tr G, so ||g||^2 <= Tr G / p_y: the flattening that the paper claims."""
    model = request.getfixturevalue(network)
    p_y = (-image_losses(model, *batch)).exp()
    assert bool((p_y * gradient_norms(model, *batch) ** 2 <= fisher_trace(model, batch[0])).all())


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize(("divergence", "factor"), [(noise_divergence, 2), (diverse_noise_divergence, 6)])
def test_divergence_under_small_noise_is_the_trace(network, divergence, factor, batch, request) -> None:
    """Equations (8) and (9), in the limit: sigma^2/2 Tr G and sigma_max^2/6 Tr G."""
    model = request.getfixturevalue(network)
    sigma = 1e-4
    estimate = divergence(model, batch[0], sigma, draws=4000)
    expected = sigma**2 / factor * fisher_trace(model, batch[0])
    assert bool(((estimate.value - expected).abs() < 4.5 * estimate.standard_error).all())
    assert bool((estimate.standard_error < 0.06 * expected).all())


def test_no_noise_no_divergence(relu_network, batch) -> None:
    assert bool((noise_divergence(relu_network, batch[0], 0.0, draws=2).value == 0).all())


def test_negative_noise_and_no_draws_are_refused(relu_network, batch) -> None:
    with pytest.raises(UserError, match="sigma"):
        noise_divergence(relu_network, batch[0], -0.1)
    with pytest.raises(UserError, match="draws"):
        noise_divergence(relu_network, batch[0], 0.1, draws=0)
