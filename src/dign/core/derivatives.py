"""Derivatives of a function of images that can be differentiated again: gradients, and products with the Hessian.

The Hessian H is one (d,d) block per image and is never formed. Two ways lead to H v: double backward, exact at the
point (`Hessian`), and the change of the gradient along v (`gradient_change`), which sees the kinks of a network of
ReLUs as well. The landscape measures with them, and methods that flatten the landscape train through them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dign.core.errors import UserError

ImageFunction = Callable[[Tensor], Tensor]
"""From a batch of images (N,...) to one value per image (N,), each of which depends on its own image alone."""

NO_SECOND_DERIVATIVE = (
    "The model has no second derivative with respect to the image ({reason}): use an activation that can be "
    "differentiated twice, or what needs none: a method such as DiGN, and curvature estimated by centered differences."
)


def norms(v: Tensor) -> Tensor:
    """The l2 norm of each image, (N,...) to (N,).

    >>> norms(torch.tensor([[[3.0, 4.0]]]))
    tensor([5.])
    """
    lengths: Tensor = v.flatten(1).norm(dim=1)
    return lengths


def dots(a: Tensor, b: Tensor) -> Tensor:
    """The inner product of each pair of images, (N,...) and (N,...) to (N,).

    >>> dots(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([11.])
    """
    return (a * b).flatten(1).sum(1)


def per_image(values: Tensor, x: Tensor) -> Tensor:
    """Values (N,) in a shape that multiplies images (N,...).

    >>> per_image(torch.ones(2), torch.ones(2, 3, 8, 8)).shape
    torch.Size([2, 1, 1, 1])
    """
    return values.view(-1, *[1] * (x.dim() - 1))


def gradients(values: Tensor, inputs: Tensor) -> Tensor:
    """The gradient of the sum of `values` with respect to the images, as part of the graph: it can be trained through.

    Args:
        values: One value per image (N,), computed from `inputs`.
        inputs: Images (N,...) that require a gradient.

    Raises:
        UserError: The model has no second derivative, or gradients are switched off.

    >>> x = torch.tensor([[3.0]], requires_grad=True)
    >>> gradients((x**3).sum(1), x)
    tensor([[27.]], grad_fn=<MulBackward0>)
    """
    if not torch.is_grad_enabled():
        raise UserError("gradients are switched off here, and this needs them: call it outside of torch.no_grad().")
    with explain_second_derivative():
        (made,) = torch.autograd.grad(values.sum(), inputs, create_graph=True)
    return made


def track(x: Tensor, anchor: Tensor | None = None) -> Tensor:
    """The images as the start of a graph, so that gradients with respect to them can be taken.

    Args:
        x: Images (N,...); no gradient flows to them.
        anchor: Any parameter of the model, for compiled code, in which only what depends on an input that requires a
            gradient can be differentiated by: the images then do, by zero times the parameter.

    >>> track(torch.ones(2)).requires_grad
    True
    """
    if torch.compiler.is_compiling() and anchor is not None:
        return x.detach() + 0 * (anchor - anchor.detach()).sum().to(x.dtype)
    return x.detach().requires_grad_()


def trainable_parameter(model: nn.Module) -> Tensor | None:
    """A parameter that is trained, as an anchor for `track`; None where there is none.

    >>> trainable_parameter(nn.Linear(1, 1)).shape
    torch.Size([1, 1])
    """
    return next((parameter for parameter in model.parameters() if parameter.requires_grad), None)


def values_and_gradients(function: ImageFunction, x: Tensor, anchor: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The values of a function (N,) and their gradients (N,...), both as part of one graph.

    Args:
        function: From images to one value per image.
        x: Images (N,...); they are not changed, and no gradient flows to them.
        anchor: As for `track`.

    >>> values, made = values_and_gradients(lambda x: (x**2).sum(1), torch.tensor([[3.0]]))
    >>> values.item(), made.item()
    (9.0, 6.0)
    """
    inputs = track(x, anchor)
    values = function(inputs)
    return values, gradients(values, inputs)


def gradient_change(
    function: ImageFunction, x: Tensor, v: Tensor, at_x: Tensor | None = None, anchor: Tensor | None = None
) -> Tensor:
    """The gradient at x + v less that at x, (N,...): H v for a small v, as part of the graph.

    Args:
        function: From images to one value per image.
        x: Images (N,...).
        v: The step (N,...); no gradient flows to it.
        at_x: The gradient at x where it is at hand: one evaluation less.
        anchor: As for `track`.

    >>> gradient_change(lambda x: (x**2).sum(1), torch.ones(1, 2), torch.tensor([[0.5, 0.0]])).tolist()
    [[1.0, 0.0]]
    """
    at_x = values_and_gradients(function, x, anchor)[1] if at_x is None else at_x
    return values_and_gradients(function, x + v.detach(), anchor)[1] - at_x


class Hessian:
    """Products with the Hessian of a function with one value per image, at one batch of images: `hessian @ v`.

    The graph of the gradient is built once (one gradient evaluation) and every product is one backward pass
    through it, which costs about two gradient evaluations.

    Args:
        inputs: The images (N,...), which require a gradient.
        values: One value per image (N,), computed from `inputs`.

    Raises:
        UserError: The model has no second derivative.

    >>> x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    >>> Hessian(x, (x**3).sum(1)) @ torch.tensor([[1.0, 1.0]])
    tensor([[ 6., 12.]])
    """

    def __init__(self, inputs: Tensor, values: Tensor) -> None:
        self._inputs = inputs
        self._gradients = gradients(values, inputs)
        if not self._gradients.requires_grad:
            raise UserError(NO_SECOND_DERIVATIVE.format(reason="its gradient does not depend on the image"))
        if _stops_at_first_order(self._gradients):
            raise UserError(NO_SECOND_DERIVATIVE.format(reason="one of its operations can be differentiated only once"))
        self.gradients = self._gradients.detach()

    @property
    def like(self) -> Tensor:
        """A tensor of the shape, type and device of the vectors."""
        return self.gradients

    def __matmul__(self, v: Tensor) -> Tensor:
        """H v of each image, (N,...) to (N,...)."""
        with explain_second_derivative():
            (product,) = torch.autograd.grad(self._gradients, self._inputs, grad_outputs=v, retain_graph=True)
        return product


def _stops_at_first_order(made: Tensor) -> bool:
    """Whether the graph of the gradient contains an operation that was marked `once_differentiable`.

    Autograd would complain only if nothing else led to the image; beside a skip connection it would leave the
    operation out in silence.
    """
    seen, waiting = set(), [made.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        if node.name() == "torch::autograd::Error":
            return True
        seen.add(node)
        waiting.extend(following for following, _ in node.next_functions)
    return False


@contextmanager
def explain_second_derivative() -> Iterator[None]:
    """Turn autograd's own complaints about operations that can be differentiated only once into a clear sentence."""
    if torch.compiler.is_compiling():
        yield
        return
    try:
        yield
    except (RuntimeError, NotImplementedError) as error:
        message = str(error)
        missing = ("is not implemented", "not differentiable", "does not require grad", "to not have been used")
        if not any(sign in message for sign in missing):
            raise
        reason = message.splitlines()[0].rstrip(".")
        raise UserError(NO_SECOND_DERIVATIVE.format(reason=reason)) from error
