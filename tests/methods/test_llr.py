import pytest
import torch

from dign.methods import LLR


def test_a_quadratic_loss_in_closed_form(make_quadratic, x):
    """With a Hessian a I the distance from the tangent is a ||d||^2 / 2, largest at the corner of the start."""
    a, b = 0.01, torch.rand(192, generator=torch.Generator().manual_seed(1)) / 192
    model, zeros = make_quadratic(a * torch.eye(192), b), torch.zeros(len(x), dtype=torch.long)
    method = LLR(weight=4.0, slope_weight=3.0, radius=0.1, clip=False)
    outcome = method(model, x, zeros, generator=torch.Generator().manual_seed(0))
    start = 2 * torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) - 1
    corner = 0.1 * start.sign().flatten(1)
    slope = (corner * (a * x.flatten(1) + b)).sum(1).abs().mean().item()
    assert outcome.terms["nonlinearity"].item() == pytest.approx(4 * a * 0.1**2 * 192 / 2, rel=1e-3)
    assert outcome.terms["slope"].item() == pytest.approx(3 * slope, rel=1e-3)


def test_against_the_plainest_code(oracle, recorder, x, y):
    radius, steps = 8 / 255, 3
    step_size = 2.5 * radius / steps
    start = radius * (2 * torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) - 1)

    def loss(image, label):
        return -recorder.body(image[None]).log_softmax(1)[0, label]

    distances, slopes = [], []
    for i, (image, label) in enumerate(zip(x, y, strict=True)):
        variable = image.clone().requires_grad_()
        value = loss(variable, label)
        (gradient,) = torch.autograd.grad(value, variable)
        d = (image + start[i]).clamp(0, 1) - image
        for _ in range(steps):
            d.requires_grad_()
            g = (loss(image + d, label) - value.detach() - (d * gradient).sum()).abs()
            (up,) = torch.autograd.grad(g, d)
            d = (d.detach() + step_size * up.sign()).clamp(-radius, radius)
            d = (image + d).clamp(0, 1) - image
        slopes.append((d * gradient).sum().abs().item())
        distances.append((loss(image + d, label) - value - (d * gradient).sum()).abs().item())
    outcome = LLR(steps=steps)(recorder, x, y, generator=torch.Generator().manual_seed(0))
    assert outcome.terms["slope"].item() == pytest.approx(3 * sum(slopes) / 6, rel=1e-2)
    assert outcome.terms["nonlinearity"].item() == pytest.approx(4 * sum(distances) / 6, rel=5e-2, abs=1e-4)


def test_the_search_finds_more_than_it_starts_with(recorder, x, y):
    def distance(steps):
        method = LLR(steps=steps, radius=0.2, step_size=None if steps > 1 else 0.0)
        return method(recorder, x, y, generator=torch.Generator().manual_seed(0)).terms["nonlinearity"]

    assert distance(10) > distance(1)


def test_the_model_is_left_as_it_was(normed_recorder, x, y):
    normed_recorder.train()
    LLR(steps=2)(normed_recorder, x, y).loss.backward()
    assert all(module.training for module in normed_recorder.modules())
    assert all(parameter.requires_grad and parameter.grad is not None for parameter in normed_recorder.parameters())
    assert normed_recorder.body[1].num_batches_tracked == 1
