"""A short measurement of how fast a run will be: a few real steps, predictions and corruptions on images of noise."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from dign.core.pixels import to_float
from dign.corruptions import corrupt
from dign.evaluation.predictors import in_precision
from dign.grid.evaluate_table import Evaluation
from dign.models import build
from dign.models.winograd import use_winograd
from dign.parallel.fabric import make_fabric
from dign.runs.config import RunConfig
from dign.runs.folder import make_run_method
from dign.training.optimizers import make_optimizer
from dign.training.setup import make_transforms
from dign.training.starting_weights import freeze

LONG_ENOUGH = 0.3
"""Seconds from which on a measurement is trusted; a shorter one is repeated with twice the images."""
TOO_LONG = 20.0
"""Seconds from which on it is not even repeated after the warm-up, which makes tables and pictures that are kept."""


@dataclass(frozen=True)
class Extent:
    """How much data a run processes."""

    train: int
    evaluated: int
    size: tuple[int, int]
    classes: int


@dataclass(frozen=True)
class Speed:
    """Seconds per image: of a training step, of a prediction, and of all corruptions at one severity."""

    step: float
    predict: float
    corrupt: float


def measure_speed(config: RunConfig, extent: Extent, evaluation: Evaluation) -> Speed:
    """The speed of a run and of its evaluation on its device, with the threads that are set."""
    generator = torch.Generator().manual_seed(0)

    def images(count: int) -> Tensor:
        return torch.randint(0, 256, (count, 3, *extent.size), generator=generator, dtype=torch.uint8)

    def corrupt_batch(batch: Tensor) -> None:
        for name in evaluation.corruptions:
            corrupt(batch, name, 3, profile=evaluation.profile, seed=0)

    step, predict, device = _actions(config, extent, evaluation.precision)
    at_test = min(500, extent.evaluated)
    return Speed(
        step=seconds_per_image(step, lambda n: images(n).to(device), min(config.batch_size, extent.train)),
        predict=seconds_per_image(predict, lambda n: images(n).to(device), at_test),
        corrupt=seconds_per_image(corrupt_batch, lambda n: images(n).to(device), at_test),
    )


def _actions(
    config: RunConfig, extent: Extent, precision: str
) -> tuple[Callable[[Tensor], None], Callable[[Tensor], None], torch.device]:
    """A training step and a prediction, as functions of a batch of uint8 images, and the device they want it on."""
    fabric = make_fabric(config.device, config.precision)
    model: nn.Module = build(config.model, classes=extent.classes, image_size=extent.size)
    if config.channels_last:
        model = model.to(memory_format=torch.channels_last)
    if config.winograd:
        use_winograd(model)
    freeze(model, config.freeze, norms=config.freeze_norms)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = make_optimizer(config.optimizer, trained, lr=1e-9, momentum=0.9, weight_decay=0)
    network = model
    model, optimizer = fabric.setup(network, optimizer)
    method = make_run_method(config)
    probabilities = in_precision(partial(method.predict, network), network, precision, fabric.device)
    generator = torch.Generator(fabric.device).manual_seed(0)
    transforms = make_transforms(config)

    def step(images: Tensor) -> None:
        model.train()
        x = transforms(to_float(images), generator)
        y = torch.zeros(len(x), dtype=torch.long, device=fabric.device)
        fabric.backward(method(model, x, y, generator=generator).loss)
        optimizer.step()
        optimizer.zero_grad()

    @torch.no_grad()
    def predict(images: Tensor) -> None:
        model.eval()
        probabilities(to_float(images), generator)

    return step, predict, fabric.device


def seconds_per_image(action: Callable[[Tensor], None], batch: Callable[[int], Tensor], most: int) -> float:
    """The time of `action` on a batch of `most` images, per image.

    It is measured on ever larger batches until it takes long enough to be trusted. The last two separate the cost of a
    step without its images (such as transforming the kernels) from what each image adds.
    """
    count = min(2, most)  # batch norm needs two
    first = _seconds(action, batch(count))  # warms up
    if first > TOO_LONG:
        return first / count
    half = None
    while True:
        seconds = _seconds(action, batch(count))
        if count >= most:
            return seconds / count
        if half is not None and seconds >= LONG_ENOUGH:
            each = min(max(0.0, 2 * (seconds - half) / count), seconds / count)
            return each + (seconds - each * count) / most
        half, count = seconds, min(2 * count, most)


def _seconds(action: Callable[[Tensor], None], images: Tensor) -> float:
    _wait(images)
    start = time.perf_counter()
    action(images)
    _wait(images)
    return time.perf_counter() - start


def _wait(images: Tensor) -> None:
    if images.is_cuda:
        torch.cuda.synchronize(images.device)
