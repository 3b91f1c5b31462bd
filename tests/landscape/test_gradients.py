"""Input gradients against softmax regression on paper, and the promise to leave no mark."""

import pytest
import torch
from torch import nn

from dign.core.errors import UserError
from dign.landscape import (
    fisher_trace,
    gradient_norms,
    hessian_traces,
    image_losses,
    input_gradients,
    largest_eigenvalue,
    noise_divergence,
    squared_curvature_by_differences,
)


def test_gradient_of_softmax_regression_is_w_transposed_times_the_error(softmax_regression, batch) -> None:
    x, y = batch
    w, b = softmax_regression[1].weight.detach(), softmax_regression[1].bias.detach()
    p = (x.flatten(1) @ w.T + b).softmax(1)
    expected = (p - nn.functional.one_hot(y, 4)) @ w
    losses, gradients, log_p = input_gradients(softmax_regression, x, y)
    torch.testing.assert_close(gradients.flatten(1), expected)
    torch.testing.assert_close(losses, -p.log()[torch.arange(5), y])
    torch.testing.assert_close(log_p, p.log())
    torch.testing.assert_close(gradient_norms(softmax_regression, x, y), expected.norm(dim=1))
    torch.testing.assert_close(image_losses(softmax_regression, x, y), losses)


class Conspicuous(nn.Module):
    """Batch norm, dropout and a frozen part in eval mode: everything that a careless look would change."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.dropout = nn.Dropout(0.5)
        self.backbone = nn.Conv2d(3, 3, 1)
        self.head = nn.Linear(12, 4)
        self.backbone.eval()
        self.backbone.weight.requires_grad_(False)

    def forward(self, x):
        return self.head(self.dropout(self.backbone(self.norm(x)).relu().flatten(1)))


LOOKS = {
    "gradient_norms": gradient_norms,
    "hessian_traces": lambda m, x, y: hessian_traces(m, x, y, draws=2)[0].value,
    "differences": lambda m, x, y: squared_curvature_by_differences(m, x, y, draws=2).value,
    "largest_eigenvalue": lambda m, x, y: largest_eigenvalue(m, x, y, iterations=3).largest,
    "fisher_trace": lambda m, x, y: fisher_trace(m, x),
    "noise_divergence": lambda m, x, y: noise_divergence(m, x, 0.1, draws=2).value,
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_a_look_leaves_no_mark(look, batch) -> None:
    model = Conspicuous().double().train()
    model.backbone.eval()
    model.head.weight.grad = torch.ones_like(model.head.weight)
    x, y = batch
    before = {name: value.clone() for name, value in model.state_dict().items()}
    image_before, random_before = x.clone(), torch.get_rng_state()
    with torch.no_grad():  # also inside somebody's no_grad block
        first = look(model, x, y)
    assert torch.equal(look(model, x, y), first), "repeatable without a seed"
    assert first.shape == (5,) and not first.requires_grad
    assert model.training and model.norm.training and not model.backbone.training
    assert not model.backbone.weight.requires_grad and model.head.weight.requires_grad
    assert model.norm.weight.grad is None and bool((model.head.weight.grad == 1).all())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(x, image_before) and not x.requires_grad
    assert torch.equal(torch.get_rng_state(), random_before)


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
def test_a_look_costs_passes_per_batch_not_per_image(look, softmax_regression, batch) -> None:
    """The number of calls of the model does not depend on the number of images."""
    x, y = batch
    calls = []
    softmax_regression.register_forward_hook(lambda *_: calls.append(1))
    look(softmax_regression, x, y)
    for_five = len(calls)
    calls.clear()
    look(softmax_regression, x[:1], y[:1])
    assert len(calls) == for_five


def test_model_mode_is_restored_after_an_error(softmax_regression, batch) -> None:
    x, _ = batch
    softmax_regression.train()
    with pytest.raises(UserError):
        gradient_norms(softmax_regression, x, torch.full((5,), 9))
    assert softmax_regression.training and softmax_regression[1].weight.requires_grad


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "labels are missing"),
        (torch.zeros(3, dtype=torch.int64), "5 class indices"),
        (torch.zeros(5), "5 class indices"),
        (torch.full((5,), -1), r"outside 0\.\.3"),
        (torch.full((5,), 4), r"outside 0\.\.3"),
    ],
)
def test_wrong_labels_are_refused(labels, message, softmax_regression, batch) -> None:
    with pytest.raises(UserError, match=message):
        gradient_norms(softmax_regression, batch[0], labels)


def test_images_that_are_not_float_are_refused(softmax_regression, batch) -> None:
    with pytest.raises(UserError, match="divide uint8 images by 255"):
        gradient_norms(softmax_regression, (255 * batch[0]).to(torch.uint8), batch[1])


def test_a_model_without_gradient_is_refused(batch) -> None:
    class Detached(nn.Module):
        def forward(self, x):
            return x.detach().flatten(1)[:, :4]

    with pytest.raises(UserError, match="no gradient with respect to the image"):
        gradient_norms(Detached(), *batch)


def test_output_that_is_not_a_number_is_refused(softmax_regression, batch) -> None:
    with torch.no_grad():
        softmax_regression[1].weight.fill_(torch.nan)
    with pytest.raises(UserError, match="not finite"):
        gradient_norms(softmax_regression, *batch)
