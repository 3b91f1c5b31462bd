"""Hessian-vector products, traces and differences against full Hessians and softmax regression on paper."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.landscape import (
    hessian,
    hessian_traces,
    hessian_vector_product,
    largest_eigenvalue,
    squared_curvature_by_differences,
)


def closed_form_hessian(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """W^T (diag p - p p^T) W."""
    w = model[1].weight.detach()
    p = model(x).softmax(1).detach()
    return w.T @ (torch.diag_embed(p) - p[:, :, None] * p[:, None]) @ w


def test_product_on_softmax_regression(softmax_regression, batch) -> None:
    x, y = batch
    v = torch.randn(x.shape, generator=torch.Generator().manual_seed(3), dtype=x.dtype)
    expected = (closed_form_hessian(softmax_regression, x) @ v.flatten(1)[:, :, None])[:, :, 0]
    torch.testing.assert_close(hessian_vector_product(softmax_regression, x, y, v).flatten(1), expected)


@pytest.mark.parametrize("network", ["relu_network", "smooth_network"])
def test_product_against_the_full_hessian(network, batch, request, full_hessians) -> None:
    model = request.getfixturevalue(network)
    x, y = batch
    full = full_hessians(model, x, y)
    with hessian(model, x, y) as h:
        columns = [(h @ unit.expand(5, -1).view_as(x)).flatten(1) for unit in torch.eye(12, dtype=x.dtype)]
    torch.testing.assert_close(torch.stack(columns, 2), full)


def test_traces_agree_with_the_closed_form_within_their_standard_error(softmax_regression, batch) -> None:
    full = closed_form_hessian(softmax_regression, batch[0])
    trace, square = hessian_traces(softmax_regression, *batch, draws=2000)
    for estimate, exact in [
        (trace, full.diagonal(dim1=1, dim2=2).sum(1)),
        (square, (full @ full).diagonal(dim1=1, dim2=2).sum(1)),
    ]:
        assert bool(((estimate.value - exact).abs() < 4 * estimate.standard_error).all())
        assert bool((estimate.standard_error < 0.1 * exact).all())


@pytest.mark.slow
def test_hutchinsons_variance_is_that_of_the_formula_and_falls_with_the_draws(softmax_regression, batch) -> None:
    """Var(z^T H z) = 2 (||H||_F^2 - sum_i H_ii^2) for random signs, divided by the number of draws."""
    full = closed_form_hessian(softmax_regression, batch[0])
    variance = 2 * (full.square().sum((1, 2)) - full.diagonal(dim1=1, dim2=2).square().sum(1))
    for draws in (4, 64):
        estimates = torch.stack(
            [
                hessian_traces(softmax_regression, *batch, draws=draws, generator=torch.Generator().manual_seed(seed))[
                    0
                ].value
                for seed in range(150)
            ]
        )
        ratio = estimates.var(0) * draws / variance
        assert bool(((ratio > 0.6) & (ratio < 1.6)).all()), ratio


def test_a_diagonal_hessian_needs_one_draw() -> None:
    """Random signs give Tr(H) exactly where H is diagonal: here p = 1/2 and one input pixel only matters."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(3, 2, bias=False)).double()
    with torch.no_grad():
        model[1].weight.copy_(torch.tensor([[3.0, 0, 0], [0, 0, 0]]))
    x, y = torch.zeros(1, 3, 1, 1, dtype=torch.float64), torch.tensor([0])
    trace, square = hessian_traces(model, x, y, draws=1)
    assert trace.value.item() == pytest.approx(9 / 4)  # 3^2 * p (1 - p)
    assert square.value.item() == pytest.approx((9 / 4) ** 2)
    assert trace.standard_error.isnan().all()


def test_centered_differences_agree_with_double_backward_on_a_smooth_network(smooth_network, batch) -> None:
    """At the same z and for every small eta: the estimate does not depend on eta, as the paper's formula would."""
    x, y = batch
    z = torch.randn(x.shape, generator=torch.Generator().manual_seed(5), dtype=x.dtype)
    exact = hessian_vector_product(smooth_network, x, y, z).flatten(1).square().sum(1)
    for eta in (1e-3, 1e-4):
        estimate = squared_curvature_by_differences(
            smooth_network, x, y, eta=eta, draws=1, generator=torch.Generator().manual_seed(5)
        )
        torch.testing.assert_close(estimate.value, exact, rtol=1e-3, atol=0)


class OnlyOnce(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        return 2 * gradient


@pytest.mark.parametrize("skip", [0, 1])
def test_a_model_that_can_be_differentiated_only_once_is_refused_in_one_sentence(
    skip, softmax_regression, batch
) -> None:
    """Also beside a skip connection, where autograd by itself would give a wrong product in silence."""

    class Rough(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rest = softmax_regression

        def forward(self, x):
            return self.rest(OnlyOnce.apply(x) + skip * x)

    for look in (hessian_traces, largest_eigenvalue):
        with pytest.raises(UserError, match=r"no second derivative .* centered differences") as caught:
            look(Rough(), *batch)
        assert "\n" not in str(caught.value)
    assert squared_curvature_by_differences(Rough(), *batch).value.isfinite().all()


def test_a_step_activation_is_refused(batch) -> None:
    """sign() has a gradient of zero everywhere, and no graph behind it."""

    class Steps(nn.Module):
        def forward(self, x):
            return torch.sign(x - 0.5).flatten(1)[:, :4]

    with pytest.raises(UserError, match="no second derivative"):
        hessian_traces(Steps(), *batch)


def test_an_error_of_the_model_itself_is_not_disguised(batch) -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        hessian_traces(nn.Sequential(nn.Flatten(), nn.Linear(3, 4)).double(), *batch)
