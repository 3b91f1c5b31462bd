"""Gradients that can be trained through, and products with the Hessian, against closed forms."""

import pytest
import torch
from torch import nn

from dign.core.derivatives import Hessian, dots, gradient_change, gradients, norms, per_image, values_and_gradients
from dign.core.errors import UserError


@pytest.fixture
def quadratic():
    """f(x) = x^T A x / 2 for each image, A symmetric."""
    a = torch.randn(4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    a = a + a.T
    return a, lambda x: 0.5 * torch.einsum("ni,ij,nj->n", x, a, x)


@pytest.fixture
def points():
    return torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_of_a_quadratic_function(quadratic, points):
    a, function = quadratic
    values, made = values_and_gradients(function, points)
    torch.testing.assert_close(values, function(points))
    torch.testing.assert_close(made, points @ a)
    v = torch.randn_like(points)
    torch.testing.assert_close(gradient_change(function, points, v), v @ a)
    torch.testing.assert_close(gradient_change(function, points, v, made), v @ a)
    inputs = points.clone().requires_grad_()
    torch.testing.assert_close(Hessian(inputs, function(inputs)) @ v, v @ a)


def test_a_gradient_can_be_trained_through():
    weight = torch.tensor([[2.0, 1.0]], requires_grad=True)
    _, made = values_and_gradients(lambda x: ((x @ weight.T) ** 2).sum(1), torch.tensor([[1.0, 1.0]]))
    made.sum().backward()  # gradient 2 (w.x) w, its sum 2 (w.x) (w_1 + w_2)
    assert weight.grad.tolist() == [[2 * (1 * 3 + 3), 2 * (1 * 3 + 3)]]


def test_no_gradient_flows_to_the_images_and_they_stay_as_they_are():
    x = torch.ones(2, 3)
    values_and_gradients(lambda x: (x**3).sum(1), x)[1].sum().backward()
    assert x.grad is None and not x.requires_grad


def test_a_function_that_can_be_differentiated_once_is_one_sentence():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return x**2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(context, gradient):
            return gradient

    inputs = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(UserError, match="has no second derivative"):
        Hessian(inputs, Once.apply(inputs).sum(1))
    with pytest.raises(UserError, match="has no second derivative"):
        Hessian(inputs, nn.Linear(3, 1).requires_grad_(False)(inputs)[:, 0])
    with pytest.raises(UserError, match="has no second derivative"):
        gradients(torch.ones(2, requires_grad=True), inputs)


def test_numbers_of_each_image():
    images = torch.arange(8.0).view(2, 1, 2, 2)
    assert norms(images).tolist() == pytest.approx([14**0.5, (16 + 25 + 36 + 49) ** 0.5])
    assert dots(images, torch.ones_like(images)).tolist() == [6.0, 22.0]
    assert per_image(torch.tensor([1.0, 2.0]), images).shape == (2, 1, 1, 1)
