import pytest
import torch

from dign.methods import CURE


@pytest.fixture
def matrix():
    a = torch.randn(192, 192, generator=torch.Generator().manual_seed(0)) / 192
    return a @ a.T


def test_a_quadratic_loss_in_closed_form(make_quadratic, matrix, x):
    """The change of the gradient along z is the Hessian's product with it, whatever the step."""
    b = torch.rand(192, generator=torch.Generator().manual_seed(1)) / 192
    zeros = torch.zeros(len(x), dtype=torch.long)
    outcome = CURE(weight=4.0, step=1.5)(make_quadratic(matrix, b), x, zeros)
    signs = (x.flatten(1) @ matrix + b).sign()
    expected = 4 * (1.5 * (signs / 192**0.5) @ matrix).norm(dim=1).mean()
    assert outcome.terms["curvature_penalty"].item() == pytest.approx(expected.item(), rel=1e-3)
    squared = CURE(weight=4.0, step=1.5, squared=True)(make_quadratic(matrix, b), x, zeros)
    expected = 4 * (1.5 * (signs / 192**0.5) @ matrix).norm(dim=1).square().mean()
    assert squared.terms["curvature_penalty"].item() == pytest.approx(expected.item(), rel=1e-3)


def test_against_the_plainest_code(oracle, normed_recorder, x, y):
    """With batch norm by the statistics of the batch, of which none is recorded."""
    normed_recorder.train()
    outcome = CURE(weight=3.0, step=0.7)(normed_recorder, x, y)
    assert normed_recorder.modes == [True, False, False]
    assert all(module.training for module in normed_recorder.modules())
    assert normed_recorder.body[1].num_batches_tracked == 1
    body = normed_recorder.body

    def gradients(images):
        variable = images.clone().requires_grad_()
        losses = -body(variable).log_softmax(1)[torch.arange(6), y]
        return torch.autograd.grad(losses.sum(), variable)[0]

    here = gradients(x)
    z = torch.stack([image.sign() / image.sign().norm() for image in here])
    penalties = [change.norm().item() for change in gradients(x + 0.7 * z) - here]
    assert outcome.terms["curvature_penalty"].item() == pytest.approx(3 * sum(penalties) / 6, rel=1e-4)


def test_the_step_grows():
    steps = [CURE(step=3.0, ramp=0.5).at(progress).step for progress in (0, 0.25, 0.5, 1)]
    assert steps == pytest.approx([0.1, 1.55, 3, 3])
    assert CURE(step=3.0).at(0.1) == CURE(step=3.0)


def test_a_gradient_of_zero_has_no_direction_and_no_penalty(x, y):
    class Constant(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bias = torch.nn.Parameter(torch.zeros(5))

        def forward(self, x):
            return self.bias + 0 * x.flatten(1)[:, :5]

    outcome = CURE()(Constant(), x, y)
    outcome.loss.backward()
    assert outcome.terms["curvature_penalty"] == 0
