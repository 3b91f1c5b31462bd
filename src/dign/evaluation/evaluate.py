"""`dign.evaluate`: accuracy and calibration of any model on any images, clean and under corruptions."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain

import torch
from torch import nn

from dign.core.checks import check_integer
from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.corruptions.benchmark.read import Benchmark
from dign.evaluation.conclusion import choose_readings, conclude, promises_of
from dign.evaluation.conditions import Conditions
from dign.evaluation.info import count_predictions, describe_evaluation, describe_model
from dign.evaluation.inputs import Data, open_images
from dign.evaluation.measure import measure, plan_work
from dign.evaluation.predictors import (
    CheckedPredictor,
    Model,
    check_logits,
    device_of,
    gives_logits,
    in_precision,
    make_predictor,
)
from dign.evaluation.results import Results
from dign.evaluation.summarize import CLEAN
from dign.parallel.devices import find_device
from dign.runs.classifier import Classifier


def evaluate(
    model: Model,
    data: Data,
    conditions: Conditions | Benchmark | None = None,
    *,
    bins: int = 16,
    batch_size: int = 500,
    precision: str = "32",
    device: torch.device | str | None = None,
    temperature: float | None = None,
    name: str | None = None,
    progress: Callable[[int, int | None], None] = lambda done, total: None,
) -> Results:
    """Measure accuracy and calibration of a model, on clean images and under corruptions.

    The data is read once, batch by batch, and each batch is corrupted on the fly: memory grows by a few bytes for each
    image and condition. The randomness of a corruption depends on the seed and on an image's number in the data, not on
    the batch size; a loader that shuffles gives other draws each time. Images and labels are never written to.

    Args:
        model: A module from images (N,C,H,W) in [0,1] to logits, in any form that `logits_of` understands; an object
            with `predict(images, generator)` that gives probabilities, such as the classifier of `dign.load_model`;
            or a function from images to probabilities, with an optional second parameter for a generator. A module is
            switched to eval mode for the evaluation and is left as it was; it is not moved to another device.
        data: A DataLoader or Dataset of (image, label), a pair of arrays (images, labels), a `Split`, or a `DataSet`,
            whose test split is taken. Images are uint8, or float in [0,1].
        conditions: Which corruptions at which severities, or an open benchmark; by default all 19 at severities 1 to 5.
        bins: Number of calibration bins.
        batch_size: Images predicted at once; a DataLoader keeps its own.
        precision: Of the model's arithmetic: "32", or mixed "bf16" or "16", which is faster on a GPU.
        device: Where the images are sent; by default where the model is.
        temperature: Also give the pooled scores of the predictions at this temperature.
        name: Name of the model in tables.
        progress: Called with the number of predictions done and of all predictions, None where that is not known.

    Returns:
        The results, which print as a table.

    Raises:
        UserError: Model, images or labels are not what is described here, or there are no images.

    >>> from torch import nn
    >>> images, labels = torch.rand(8, 3, 16, 16), torch.arange(8) % 4
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(768, 4))
    >>> results = evaluate(net, (images, labels), Conditions(corruptions=("fog",), severities=(1, 3)))
    >>> results.clean.count, list(results.corruptions["fog"].severities)
    (8, [1, 3])
    """
    check_integer(1, bins=bins, batch_size=batch_size)
    if temperature is not None and not (isinstance(temperature, int | float) and temperature > 0):
        raise UserError(f"temperature must be positive, not {temperature!r}.")
    started = time.monotonic()
    conditions = Conditions() if conditions is None else conditions
    if not isinstance(conditions, Conditions | Benchmark):
        raise UserError(
            f"conditions must be dign.Conditions or an open benchmark, not a {type(conditions).__name__}: "
            'expected e.g. dign.Conditions(corruptions=["fog"], severities=[3]).'
        )
    run = describe_model(model, name)
    target = device_of(model) if device is None else find_device(str(device))
    stream = open_images(data, batch_size)
    batches = iter(stream.batches)
    first = next(batches, None)
    if first is None:
        raise UserError("data has no images to evaluate.")
    if gives_logits(model):
        check_logits(run.name, model, first[0].shape[1:], len(stream.classes) if stream.classes else None)
    own = model.calibrator if isinstance(model, Classifier) else None
    given = make_predictor(model.predict_raw if isinstance(model, Classifier) else model)
    predict = CheckedPredictor(in_precision(given, model, precision, target))
    promises = promises_of(own)
    total = count_predictions(conditions, stream.count)
    with freeze_temporarily(model) if isinstance(model, nn.Module) else nullcontext():
        measured = measure(
            predict,
            plan_work(chain([first], batches), conditions, batch_size, target),
            seed=conditions.seed or 0,
            bins=bins,
            device=target,
            readings=choose_readings(own, temperature),
            promises=promises,
            progress=lambda done: progress(done, total),
        )
    image_size = (first[0].shape[-2], first[0].shape[-1])
    info = describe_evaluation(stream.split, measured.counts[CLEAN], image_size, conditions, target, started, precision)
    classes = stream.classes or [str(index) for index in range(predict.classes or 0)]
    return conclude(measured, replace(run, data=stream.name), info, classes, own, promises, temperature)
