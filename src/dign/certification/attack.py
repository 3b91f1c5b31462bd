"""The smallest change that an attack finds against a smoothed classifier, beside what is certified of it.

A certificate says that no change shorter than its radius alters the answer; an attack shows a change that does. So the
norm that an attack finds is never below the radius (but for the certificate's own probability to be wrong, alpha), and
the gap between the two is what is not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from dign.certification.smoothing import ABSTAIN, Smoothed, check_settings
from dign.core.checks import check_integer
from dign.core.freezing import freeze_temporarily
from dign.core.outputs import logits_of
from dign.core.pixels import to_float
from dign.core.seeds import make_generator

SHRINK = 0.05
"""By what fraction the tried norm falls after a step that was wrong for the model, or grows after one that was not."""
HALVINGS = 10
"""How often the interval around the border is halved in the end."""


def smallest_change(
    model: nn.Module,
    image: Tensor,
    answer: int,
    *,
    sigma: float,
    steps: int = 40,
    copies: int = 32,
    votes: int = 400,
    alpha: float = 0.001,
    seed: int = 0,
    number: int = 0,
) -> float:
    """The l2 norm of the smallest change found that alters a smoothed classifier's answer; infinity if none is found.

    Direction and norm are searched apart (Rony et al., 2019): each step follows the gradient of the mean prediction
    under noise, and the norm shrinks while the answer is another one. On the line that this leaves, votes of fresh
    noise decide, by the exact test of `Smoothed.classify`, from where on the answer is another. Pixels may leave [0,1],
    as certificates allow for it.

    Args:
        model: From images in [0,1] to logits; it is left as it was found.
        image: (3,H,W), uint8 or float in [0,1], on the model's device.
        answer: The class that the smoothed classifier gives it.
        sigma: Standard deviation of the noise.
        steps: Steps of the search.
        copies: Noisy copies whose mean prediction a step follows.
        votes: Noisy copies that vote on a change.
        alpha: Probability of a wrong vote.
        seed: Seed of the noise.
        number: The image's number, which its noise depends on.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(3, 2, bias=False))
    >>> _ = model[1].weight.data.copy_(torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    >>> round(smallest_change(model, torch.tensor([0.3, 0.5, 0.5]).view(3, 1, 1), 1, sigma=0.1), 1)
    0.3
    """
    check_settings(sigma, 1, votes, alpha, image[None])
    check_integer(1, steps=steps, copies=copies)
    x = to_float(image)
    with freeze_temporarily(model):
        direction = _search(model, x, answer, sigma, steps, copies, seed, number)
        if direction is None:
            return math.inf
        voting = Smoothed(model, sigma, votes)
        generator = make_generator(seed, "attack/votes", number)

        def is_other(length: float) -> bool:
            found = int(voting.classify((x + length * direction)[None], alpha, generator)[0])
            return found not in (ABSTAIN, answer)

        return _shortest(is_other, sigma)


def _search(
    model: nn.Module, x: Tensor, answer: int, sigma: float, steps: int, copies: int, seed: int, number: int
) -> Tensor | None:
    """The direction of the smallest change that alters the mean prediction; the last one tried if none does."""
    generator = make_generator(seed, "attack/direction", number, x.device)
    delta, length = torch.zeros_like(x), sigma
    best: tuple[float, Tensor] | None = None
    for step in range(steps):
        noise = sigma * torch.randn((copies, *x.shape), generator=generator, device=x.device, dtype=x.dtype)
        moved = (x + delta).requires_grad_()
        with torch.enable_grad():
            log_p = torch.log_softmax(logits_of(model(moved + noise)).float(), dim=1)
            mean = torch.logsumexp(log_p, dim=0) - math.log(copies)
            (gradient,) = torch.autograd.grad(-mean[answer], moved)
        is_other = int(mean.argmax()) != answer
        if is_other and (best is None or length < best[0]):
            best = (length, delta)
        length *= 1 - SHRINK if is_other else 1 + SHRINK
        rate = (1 + math.cos(math.pi * step / steps)) / 2 * 0.99 + 0.01
        slope = float(torch.linalg.vector_norm(gradient))
        if slope == 0 or not math.isfinite(slope):
            break
        delta = delta + rate * sigma * gradient / slope
        delta = delta * (length / torch.linalg.vector_norm(delta))
    last = best[1] if best else delta
    norm = torch.linalg.vector_norm(last)
    return last / norm if float(norm) > 0 else None


def _shortest(is_other: Callable[[float], bool], sigma: float) -> float:
    """Where the answer changes along a line: the end of the interval that is known to be beyond."""
    low, high = 0.0, sigma
    while not is_other(high):
        low, high = high, 2 * high
        if high > 64 * sigma:
            return math.inf
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if is_other(middle) else (middle, high)
    return high
