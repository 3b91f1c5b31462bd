import pytest
import torch

from dign.methods import GradientRegularization


def plain_gradients(body, x, y):
    """Image by image."""
    found = []
    for image, label in zip(x, y, strict=True):
        variable = image[None].clone().requires_grad_()
        loss = -body(variable).log_softmax(1)[0, label]
        found.append(torch.autograd.grad(loss, variable)[0])
    return torch.cat(found)


def test_loss_is_the_cross_entropy_plus_the_mean_of_the_squared_gradients(oracle, recorder, x, y):
    outcome, (p,), (seen,) = oracle.run(GradientRegularization(weight=2.0), recorder, x, y)
    penalty = plain_gradients(recorder.body, x, y).double().square().flatten(1).sum(1).mean().item()
    assert torch.equal(seen, x) and len(recorder.seen) == 1, "no further pass"
    assert outcome.terms["gradient_penalty"].item() == pytest.approx(2 * penalty, rel=1e-5)
    assert outcome.loss.item() == pytest.approx(oracle.cross_entropy(p, y) + 2 * penalty, rel=1e-5)


def test_the_gradient_of_the_penalty_is_that_of_differences(recorder, x, y):
    recorder.double()
    x = x.double()
    GradientRegularization(weight=1.0)(recorder, x, y).loss.backward()
    weight = recorder.body[0].weight
    found, step = weight.grad[1, 2, 0, 1].item(), 1e-6
    losses = []
    for sign in (1, -1):
        with torch.no_grad():
            weight[1, 2, 0, 1] += sign * step
        losses.append(GradientRegularization(weight=1.0)(recorder, x, y).loss.item())
        with torch.no_grad():
            weight[1, 2, 0, 1] -= sign * step
    assert found == pytest.approx((losses[0] - losses[1]) / (2 * step), rel=1e-5)


def test_a_linear_model_of_two_classes_in_closed_form(x, y):
    """Logits (w x, 0): the gradient of the loss at label 0 is -(1 - p) w."""
    w = torch.randn(192, generator=torch.Generator().manual_seed(0))

    class Linear(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(w.clone())

        def forward(self, x):
            score = x.flatten(1) @ self.w
            return torch.stack((score, torch.zeros_like(score)), 1)

    outcome = GradientRegularization(weight=1.0)(Linear(), x, torch.zeros_like(y))
    expected = ((1 - torch.sigmoid(x.flatten(1) @ w)) ** 2 * w.square().sum()).mean()
    torch.testing.assert_close(outcome.terms["gradient_penalty"], expected)


def test_pixels_of_a_segmentation_are_averaged(x):
    model = torch.nn.Conv2d(3, 4, 1)
    labels = torch.randint(0, 4, (6, 8, 8), generator=torch.Generator().manual_seed(0))
    variable = x.clone().requires_grad_()
    losses = torch.nn.functional.cross_entropy(model(variable), labels, reduction="none").mean((1, 2))
    (made,) = torch.autograd.grad(losses.sum(), variable)
    outcome = GradientRegularization(weight=1.0)(model, x, labels)
    torch.testing.assert_close(outcome.terms["gradient_penalty"], made.square().flatten(1).sum(1).mean())
