"""Orthogonalized momentum: what a step does to a kernel and to the rest, and that a killed run resumes to the same."""

import pytest
import torch
from torch import nn

from dign.runs.checkpoints import load_state, save_state
from dign.training.optimizers import REST_RATE, Orthogonal, make_optimizer, orthogonalize


@pytest.mark.parametrize("shape", [(16, 72), (72, 16), (8, 8)])
def test_the_orthogonal_part_has_the_singular_vectors_and_nearly_equal_singular_values(shape):
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    along = torch.diagonal(u.T @ orthogonalize(matrix) @ v.T)
    assert along.min() > 0.4 and along.max() < 1.3
    assert torch.linalg.matrix_norm(u.T @ orthogonalize(matrix) @ v.T - torch.diag(along)) < 1e-3


def test_a_kernel_turns_and_keeps_its_norm():
    kernel = nn.Parameter(torch.randn(8, 4, 3, 3, generator=torch.Generator().manual_seed(1)))
    before = kernel.detach().clone()
    optimizer = Orthogonal([kernel], lr=0.1, momentum=0.0)
    kernel.grad = torch.randn(8, 4, 3, 3, generator=torch.Generator().manual_seed(2)) * 1e-6  # the scale says nothing
    optimizer.step()
    assert kernel.norm().item() == pytest.approx(before.norm().item(), rel=1e-5)
    cosine = torch.sum(kernel * before) / before.norm() ** 2
    assert 0.05 < torch.acos(cosine).item() < 0.15, "about lr radians"
    assert torch.sum((kernel - before) * kernel.grad) < 0, "downhill"


def test_the_rest_moves_as_adam_does():
    ours, theirs = (nn.Parameter(torch.linspace(-1, 1, 6).view(2, 3).clone()) for _ in range(2))
    optimizer = Orthogonal([ours], lr=0.2)
    adam = torch.optim.Adam([theirs], lr=0.2 * REST_RATE, betas=(0.9, 0.95), eps=1e-10)
    for step in range(5):
        for parameter in (ours, theirs):
            parameter.grad = parameter.detach() ** 2 + step
        optimizer.step()
        adam.step()
    torch.testing.assert_close(ours, theirs)


def test_parameters_without_a_gradient_stay(tmp_path):
    kernel = nn.Parameter(torch.ones(2, 2, 1, 1))
    Orthogonal([kernel], lr=0.2).step()
    assert torch.equal(kernel, torch.ones(2, 2, 1, 1))


def test_a_saved_state_goes_on_to_the_same_weights(tmp_path):
    def make():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 36, 2))
        return model, make_optimizer("orthogonal", model.parameters(), lr=0.1, momentum=0.6, weight_decay=0.1)

    def step(model, optimizer):
        model(torch.ones(2, 3, 8, 8)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    whole, its = make()
    for _ in range(4):
        step(whole, its)
    first, its = make()
    for _ in range(2):
        step(first, its)
    save_state(tmp_path / "state.safetensors", first, its, {}, step=2)
    second, its = make()
    load_state(tmp_path / "state.safetensors", second, its)
    for _ in range(2):
        step(second, its)
    for a, b in zip(whole.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("kernel", "gradient"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_zeros_in_a_kernel_or_its_gradient_do_no_harm(kernel, gradient):
    parameter = nn.Parameter(torch.full((2, 2, 3, 3), kernel))
    parameter.grad = torch.full_like(parameter, gradient)
    Orthogonal([parameter], lr=0.2).step()
    assert torch.equal(parameter, torch.full_like(parameter, kernel))
