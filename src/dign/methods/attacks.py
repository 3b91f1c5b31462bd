"""Projected gradient ascent on the input (PGD)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.checks import check_at_least, check_integer
from dign.core.derivatives import ImageFunction
from dign.core.errors import UserError, unknown_name
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import normal_like, uniform
from dign.core.outputs import logits_of, release
from dign.methods.batch_checks import class_rows
from dign.methods.labels import Labels, cross_entropy

Objective = Callable[[Tensor], Tensor]
"""From logits to what an attack maximizes, one value per example (N,)."""
NORMS = ("linf", "l2")
STARTS = ("zero", "uniform", "gaussian")


def pgd(
    model: nn.Module,
    x: Tensor,
    objective: Objective,
    *,
    norm: str = "linf",
    radius: float = 8 / 255,
    steps: int = 7,
    step_size: float | None = None,
    start: str | Tensor = "zero",
    clip: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Images x + d with ||d|| <= radius where `objective` is large: `steps` times d <- P(d + step_size * g).

    g is the gradient's sign (linf) or the gradient scaled to length one (l2), P the projection onto the ball and, with
    `clip`, onto images in [0,1]. It costs `steps` forward and backward passes. The model is attacked in eval mode and
    left exactly as it was; parameters get no gradient.

    Args:
        model: Any module from images to logits.
        x: Images (N,3,H,W) in [0,1].
        objective: What to maximize, e.g. `cross_entropy_of(y)`.
        norm: The ball's norm, "linf" or "l2".
        radius: The ball's radius, in [0,1] pixel units.
        steps: The number of steps.
        step_size: The length of a step; 2.5 * radius / steps by default.
        start: The first d: "zero"; "uniform" in the ball; or "gaussian", 1e-3 * N(0,I), for objectives whose gradient
            vanishes at zero. Or d itself, a tensor of the shape of `x`.
        clip: Keep x + d in [0,1].
        generator: The source of the random start.

    Returns:
        The attacked images, detached.

    Raises:
        UserError: A setting is out of range.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> x, y = torch.rand(4, 3, 8, 8), torch.arange(4)
    >>> attacked = pgd(model, x, cross_entropy_of(y), radius=0.1)
    >>> bool((attacked - x).abs().max() <= 0.1 + 1e-6)
    True
    """
    PGDSettings(norm=norm, radius=radius, steps=steps, step_size=step_size, clip=clip)  # checks them
    step_size = 2.5 * radius / steps if step_size is None else step_size
    delta = project(start_in_ball(x, norm, radius, start, generator), x, norm, radius, clip)
    with freeze_temporarily(model), torch.no_grad():
        for _ in range(steps):
            (gradient,) = ascent(model, lambda d: x + d, objective, (delta,))
            delta = project(delta + step_size * steepest(gradient, norm), x, norm, radius, clip)
    return (x + delta).clamp(0, 1) if clip else x + delta


def frank_wolfe(
    model: nn.Module,
    x: Tensor,
    objective: Objective,
    norm: str = "linf",
    radius: float = 8 / 255,
    *,
    steps: int = 7,
    c: float = 2.0,
) -> Tensor:
    """Images x + d where `objective` is large, d <- (1 - g_k) d + g_k * radius * s with g_k = c / (c + k), from zero.

    s is the gradient's sign (linf) or the gradient scaled to length one (l2): d is a mean of points of the ball's
    surface, is never projected, and x + d is not kept in [0,1]. It costs `steps` forward and backward passes; the model
    is attacked in eval mode and left exactly as it was.

    Args:
        model: Any module from images to logits.
        x: Images (N,3,H,W) in [0,1].
        objective: What to maximize, e.g. `cross_entropy_of(y)`.
        norm: The ball's norm, "linf" or "l2".
        radius: The ball's radius, in [0,1] pixel units.
        steps: The number of steps, k = 0..steps - 1.
        c: How fast later steps get shorter.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(192, 10))
    >>> x, y = torch.rand(4, 3, 8, 8), torch.arange(4)
    >>> attacked = frank_wolfe(model, x, cross_entropy_of(y), radius=0.1)
    >>> bool((attacked - x).abs().max() <= 0.1 + 1e-6)
    True
    """
    delta = torch.zeros_like(x)
    with freeze_temporarily(model), torch.no_grad():
        for k in range(steps):
            (gradient,) = ascent(model, lambda d: x + d, objective, (delta,))
            delta = torch.lerp(delta, radius * steepest(gradient, norm), c / (c + k))
    return x + delta


def losses_and_gradients(function: ImageFunction, x: Tensor) -> tuple[Tensor, Tensor]:
    """The values of a function (N,) and their gradients, both detached, for a frozen model; also inside compiled code.

    >>> values, made = losses_and_gradients(lambda x: (x**2).sum(1), torch.tensor([[3.0]]))
    >>> values.item(), made.item()
    (9.0, 6.0)
    """
    if torch.compiler.is_compiling():

        def total(variable: Tensor) -> tuple[Tensor, Tensor]:
            values = function(variable)
            return values.sum(), values

        made, values = torch.func.grad(total, has_aux=True)(x)
        return values, made
    with torch.enable_grad():
        variable = x.detach().requires_grad_()
        values = function(variable)
        (made,) = torch.autograd.grad(values.sum(), variable)
    return values.detach(), made


def ascent(
    model: nn.Module, make_batch: Callable[..., Tensor], objective: Objective, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """The gradients of the objective with respect to the `inputs` that `make_batch` makes a batch of.

    For a frozen model; also inside `torch.compile`, which has no `torch.autograd.grad`.
    """
    if torch.compiler.is_compiling():

        def value(*variables: Tensor) -> Tensor:
            return objective(logits_of(model(make_batch(*variables)))).sum()

        gradients: tuple[Tensor, ...] = torch.func.grad(value, argnums=tuple(range(len(inputs))))(*inputs)
        return gradients
    with torch.enable_grad():
        variables = tuple(each.detach().requires_grad_() for each in inputs)
        return input_gradients(model, make_batch(*variables), objective, variables)


def input_gradients(
    model: nn.Module, batch: Tensor, objective: Objective, inputs: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """The gradients of the objective with respect to the `inputs` that `batch` was made from; for a frozen model."""
    logits = release(logits_of(model(batch)))
    if not logits.requires_grad:
        raise UserError("The model gives no gradients (an ONNX file has none): an attack needs a PyTorch module.")
    return torch.autograd.grad(objective(logits).sum(), inputs)


def cross_entropy_of(y: Labels) -> Objective:
    """The objective of an attack on the labels: the cross-entropy of each image, or pixel for segmentation.

    Args:
        y: Class indices (N,), or (N,H,W), or the labels of mixed images.

    >>> cross_entropy_of(torch.tensor([0, 1]))(torch.zeros(2, 10))
    tensor([2.3026, 2.3026])
    """
    return lambda logits: cross_entropy(class_rows(logits, y), y.flatten(), reduction="none")


@dataclass(frozen=True, kw_only=True)
class PGDSettings:
    """The settings of `pgd`, for the methods that attack.

    Args:
        norm: The ball's norm, "linf" or "l2".
        radius: The ball's radius, in [0,1] pixel units.
        steps: The number of steps.
        step_size: The length of a step, in [0,1] pixel units; None is 2.5 * radius / steps.
        start: Where the attack starts: "zero", "uniform" in the ball, or "gaussian".
        clip: Keep attacked images in [0,1].

    >>> PGDSettings(norm="l2", radius=0.5).steps
    7
    """

    norm: str = "linf"
    radius: float = 8 / 255
    steps: int = 7
    step_size: float | None = None
    start: str = "zero"
    clip: bool = True

    def __post_init__(self) -> None:
        check_at_least(0, radius=self.radius)
        check_integer(1, steps=self.steps)
        if self.step_size is not None:
            check_at_least(0, step_size=self.step_size)
        for kind, name, known in (("norm", self.norm, NORMS), ("start", self.start, STARTS)):
            if name not in known:
                raise unknown_name(kind, name, known)

    def attack(self, model: nn.Module, x: Tensor, objective: Objective, generator: torch.Generator | None) -> Tensor:
        """`pgd` with these settings."""
        return pgd(
            model, x, objective, norm=self.norm, radius=self.radius, steps=self.steps, step_size=self.step_size,
            start=self.start, clip=self.clip, generator=generator,
        )  # fmt: skip


def start_in_ball(
    x: Tensor, norm: str, radius: float, start: str | Tensor, generator: torch.Generator | None
) -> Tensor:
    """A first d; see `pgd` for what `start` may be."""
    if isinstance(start, Tensor):
        return start
    if start not in STARTS:
        raise unknown_name("start", start, STARTS)
    if start == "zero":
        return torch.zeros_like(x)
    if start == "uniform" and norm == "linf":
        return radius * (2 * uniform(*x.shape, generator=generator, device=x.device, dtype=x.dtype) - 1)
    noise = normal_like(x, generator)
    if start == "gaussian":
        return 1e-3 * noise
    # Uniform in the l_2 ball: a random direction, and a radius whose d-th power is uniform.
    share = uniform(len(x), 1, 1, 1, generator=generator, device=x.device, dtype=x.dtype) ** (1 / x[0].numel())
    return radius * share * steepest(noise, "l2")


def steepest(gradient: Tensor, norm: str) -> Tensor:
    """The step of length one in the norm that rises most: the sign (linf), or the scaled gradient (l2)."""
    return gradient.sign() if norm == "linf" else gradient / _length(gradient)


def project(delta: Tensor, x: Tensor, norm: str, radius: float, clip: bool) -> Tensor:
    """The nearest d in the ball and, with `clip`, its part for which x + d is in [0,1]."""
    delta = delta.clamp(-radius, radius) if norm == "linf" else delta * (radius / _length(delta)).clamp(max=1)
    return (x + delta).clamp(0, 1) - x if clip else delta


def _length(delta: Tensor) -> Tensor:
    """The l_2 norm of each image, (N,1,1,1), and a tiny number where it is zero."""
    norm: Tensor = torch.linalg.vector_norm(delta.flatten(1), dim=1).view(-1, 1, 1, 1)
    return norm.clamp(min=torch.finfo(delta.dtype).tiny)
