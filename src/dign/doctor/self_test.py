"""A self-test of a device: a step of every method and a batch of every corruption, compared with the CPU."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dign.core.errors import summarize_error
from dign.core.seeds import make_generator
from dign.corruptions import ALL_NAMES, corrupt
from dign.methods import METHODS
from dign.methods.base import Material, Method
from dign.methods.batch_checks import class_rows
from dign.methods.passes import forward
from dign.models import build

COUNT, SIDE, CLASSES = 8, 32, 10
MOST_GRADIENT_DIFFERENCE = 0.02
"""Of the gradients' length: GPUs may round products of matrices to 10 bits (TF32)."""
MOST_PIXELS = 0.01
"""The share of pixels that a corruption may give another level, and by one level only."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one test.

    Attributes:
        name: "method/dign" or "corruption/fog".
        passed: Whether it ran and agreed with the CPU.
        difference: Of the gradients, relative to their length; or the share of pixels that differ.
        seconds: The time on the device, the second time it ran.
        problem: What went wrong; empty if nothing did.
    """

    name: str
    passed: bool
    difference: float | None
    seconds: float
    problem: str = ""


def run_self_test(device: torch.device) -> Iterator[Outcome]:
    """Yield the outcome of each test. On the CPU it is compared with itself: its results must repeat.

    >>> outcome = next(run_self_test(torch.device("cpu")))
    >>> outcome.name, outcome.passed, outcome.difference
    ('method/standard', True, 0.0)
    """
    generator = make_generator(0, "doctor")
    images = torch.randint(0, 256, (COUNT, 3, SIDE, SIDE), dtype=torch.uint8, generator=generator)
    labels = torch.randint(0, CLASSES, (COUNT,), generator=generator)
    model = build("tinynet", classes=CLASSES, image_size=(SIDE, SIDE))
    for name, kind in METHODS.items():
        yield _attempt(f"method/{name}", _MethodTest(kind(), model, images / 255, labels, device))
    for name in ALL_NAMES:
        yield _attempt(f"corruption/{name}", _CorruptionTest(name, images, device))


def _attempt(name: str, test: _MethodTest | _CorruptionTest) -> Outcome:
    try:
        test.run()
        start = time.perf_counter()
        difference, problem = test.run()
        seconds = time.perf_counter() - start
    except Exception as error:  # whatever a device or its driver may raise
        return Outcome(name, False, None, 0.0, summarize_error(error))
    return Outcome(name, not problem, difference, round(seconds, 4), problem)


@dataclass(frozen=True)
class _MethodTest:
    """The views are made on the CPU, where the numbers are drawn; loss and gradients are then computed on both.

    Besides, the whole step runs on the device, with numbers that are drawn there.
    """

    method: Method
    model: nn.Module
    x: Tensor
    y: Tensor
    device: torch.device

    def run(self) -> tuple[float, str]:
        here = copy.deepcopy(self.model)
        made = self.method.prepare(here, self.x, self.y, make_generator(0, "doctor/views"))
        expected_loss, expected = self._gradients(here, made, torch.device("cpu"))
        there = copy.deepcopy(self.model).to(self.device)
        loss, found = self._gradients(there, made, self.device)
        difference = float((found - expected).norm() / expected.norm())
        x, y = self.x.to(self.device), self.y.to(self.device)
        drawn = self.method(there, x, y, generator=make_generator(0, "doctor/step", device=self.device)).loss
        if not bool(drawn.isfinite()):
            return difference, f"the loss of a step is {float(drawn):g}"
        if not difference <= MOST_GRADIENT_DIFFERENCE:
            return difference, f"loss {loss:.4f}, on the CPU {expected_loss:.4f}"
        return difference, ""

    def _gradients(self, model: nn.Module, made: Material, device: torch.device) -> tuple[float, Tensor]:
        y = made.y.to(device)
        batches = [made.x, *(view for views in made.views for view in views)]
        logits = iter([class_rows(each, y) for each in forward(model, [b.to(device) for b in batches], together=True)])
        clean = next(logits)
        terms = self.method.judge(clean, [[next(logits) for _ in views] for views in made.views], y)
        loss = torch.stack(list(terms.values())).sum()
        gradients = torch.autograd.grad(loss, [weight for weight in model.parameters() if weight.requires_grad])
        return float(loss.detach()), torch.cat([gradient.flatten() for gradient in gradients]).detach().cpu()


@dataclass(frozen=True)
class _CorruptionTest:
    name: str
    images: Tensor
    device: torch.device

    def run(self) -> tuple[float, str]:
        expected = corrupt(self.images, self.name, 3)
        found = corrupt(self.images.to(self.device), self.name, 3).cpu()
        distance = (found.int() - expected.int()).abs()
        share = float((distance > 0).double().mean())
        if share > MOST_PIXELS or int(distance.max()) > 1:
            return share, f"{100 * share:.3g} % of the pixels differ, by up to {int(distance.max())} levels"
        return share, ""
