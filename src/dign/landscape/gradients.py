"""The loss of each image and its gradient with respect to the image.

Cost is stated in gradient evaluations throughout this package: one forward and one backward pass to the input,
for a whole batch at once. A batch shares its passes because a model in eval mode treats images independently:
the gradient of the sum of the losses holds the gradient of each.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dign.core.derivatives import norms
from dign.core.divergences import log_probabilities
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily

PerImage = Callable[[Tensor], Tensor]
"""A function of log-probabilities (N,C) that gives one value per image (N,)."""


def cross_entropy(y: Tensor) -> PerImage:
    """L = -log p_y of each image, as a function of log-probabilities."""
    return lambda log_p: -log_p.gather(1, y[:, None])[:, 0]


def image_losses(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """L(x, y) = -log p(x)_y of each image (N,): one forward pass."""
    check_batch(x, y)
    with freeze_temporarily(model), torch.no_grad():
        log_p = check_logits(log_probabilities(model(x)), x, y)
        return cross_entropy(y)(log_p)


def input_gradients(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Each image's loss (N,), its gradient with respect to the image (N,...), and the log-probabilities (N,C).

    Cost: one gradient evaluation.
    """
    check_batch(x, y)
    with freeze_temporarily(model), torch.enable_grad():
        inputs, log_p = traced_log_probabilities(model, x)
        losses = cross_entropy(y)(check_logits(log_p, x, y))
        (gradients,) = torch.autograd.grad(losses.sum(), inputs)
    return losses.detach(), gradients, log_p.detach()


def gradient_norms(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """||grad_x L(x, y)||_2 of each image (N,), the first-order factor of Theorem 1. Cost: one gradient evaluation."""
    return norms(input_gradients(model, x, y)[1])


def traced_log_probabilities(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """The images as a leaf of a new graph, and the log-probabilities (N,C) that follow from them."""
    inputs = x.detach().clone().requires_grad_()
    log_p = log_probabilities(model(inputs))
    if not log_p.requires_grad:
        raise UserError(
            "The model's output has no gradient with respect to the image: "
            "it must not detach its input, round it or run under no_grad."
        )
    return inputs, log_p


def check_batch(x: Tensor, y: Tensor | None) -> None:
    """Refuse a batch without a float image and a class index for each label, in one sentence."""
    if not x.is_floating_point():
        raise UserError(f"Images must be float in [0,1], not {x.dtype}: divide uint8 images by 255.")
    if y is None:
        raise UserError("The labels are missing: the loss of an image needs its class index.")
    if y.shape != x.shape[:1] or y.is_floating_point():
        raise UserError(f"Labels must be {len(x)} class indices, one per image, not {y.dtype} {tuple(y.shape)}.")


def check_logits(log_p: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """The log-probabilities, if they are numbers (N,C) and every label is one of the C classes."""
    if log_p.dim() != 2 or len(log_p) != len(x):
        raise UserError(f"The model must give logits (N,C), not {tuple(log_p.shape)} for {len(x)} images.")
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < log_p.shape[1]:
        raise UserError(f"A label lies outside 0..{log_p.shape[1] - 1}, the model's {log_p.shape[1]} classes.")
    if not bool(log_p.isfinite().all()):
        raise UserError("The model's output is not finite for these images: its loss landscape is not defined.")
    return log_p
