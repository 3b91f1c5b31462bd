"""What comes before the first step: everything is tried, then the run's folder is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn

from dign.augment.train_transforms import TrainTransforms, shrunk_size
from dign.core.errors import UserError, summarize_error
from dign.data.dataset import DataSet
from dign.models import build, channel_statistics
from dign.parallel.batch_norm import synchronize_batch_norm
from dign.parallel.devices import describe_device
from dign.parallel.launching import torchrun_job_id
from dign.parallel.team import Team
from dign.runs.config import RunConfig
from dign.runs.folder import create_run, load_data, method_of
from dign.training.data_advice import advice
from dign.training.starting_weights import Start, freeze, starting_weights
from dign.training.trackers import check_tracker


def prepared(config: RunConfig, team: Team) -> tuple[DataSet, Start | None]:
    """The data, and the weights to start from where there are any; what is wrong with the configuration is said."""
    first = method_of(config).at(0.0)
    check_tracker(config.track)
    data = load_data(config)
    if config.keep == "best" and not len(data.validation):
        raise UserError("keep = best chooses by validation images, and there are none: set validation, or keep = last.")
    team.check_divides(batch_size_of(config, data))
    with torch.device("meta"):
        model = build(config.model, classes=len(data.classes), image_size=data.image_size)
    if config.small_first:
        _check_takes_small(model, config, data.image_size)
    images = batch_size_of(config, data) // team.world_size
    if first.together and first.cost.backward - first.cost.input_only > 1:
        images = max(images, 2)  # several views of an image pass together, and batch norm is content with two
    _check_takes(model, config, data, images)
    freeze(model, config.freeze)
    if config.sync_batch_norm:
        synchronize_batch_norm(model, team)
    return data, starting_weights(config, model)


def _check_takes(model: nn.Module, config: RunConfig, data: DataSet, images: int) -> None:
    """Whether the model can be trained on images of this size, so many at once; `model` is on the device meta."""
    try:
        _pass(model, images, data.image_size)
    except ERRORS_OF_A_MODEL:
        whole = build(config.model, classes=len(data.classes), image_size=data.image_size)
        try:  # some models only fail on that device, which holds no numbers
            _pass(whole, images, data.image_size)
        except ERRORS_OF_A_MODEL as error:
            size = "x".join(map(str, data.image_size))
            raise UserError(
                f"{config.model} cannot be trained with {images} image{'s' if images > 1 else ''} of {size} at once "
                f"({summarize_error(error).rstrip('.')}): choose another --size, --batch-size or --model."
            ) from error


ERRORS_OF_A_MODEL = (RuntimeError, AssertionError, ValueError, NotImplementedError)
"""What models raise about images that they cannot take."""


def _pass(model: nn.Module, images: int, size: tuple[int, int]) -> None:
    with torch.no_grad():
        model(torch.zeros(images, 3, *size, device=next(model.parameters()).device))


def _check_takes_small(model: nn.Module, config: RunConfig, image_size: tuple[int, int]) -> None:
    small, size = shrunk_size(*image_size), "x".join(map(str, image_size))
    if not all(4 <= less < side for less, side in zip(small, image_size, strict=True)):
        raise UserError(f"Images of {size} are too small to begin with smaller ones: leave small_first out.")
    try:
        _pass(model, 2, small)
    except ERRORS_OF_A_MODEL as error:
        reason = summarize_error(error)
        raise UserError(
            f"{config.model} takes no smaller images than {size} ({reason}): leave small_first out."
        ) from error


def create(config: RunConfig, out: Path | str, data: DataSet, start: Start | None, team: Team) -> None:
    """Make the run's folder."""
    mean, std = (start and start.normalization) or channel_statistics(data.train.images)
    facts: dict[str, Any] = {"init": {"sha256": start.digest, "fresh": start.fresh}} if start else {}
    if team.world_size > 1:
        facts["processes"] = team.world_size
    if torchrun_job_id():
        facts["job"] = torchrun_job_id()
    notes = [*advice(data, config.epochs * steps_per_epoch(config, data), from_nothing=start is None), *_about(start)]
    assert team.device is not None  # it was gathered to train
    create_run(out, config, data, mean, std, describe_device(config.precision, team.device), notes=notes, **facts)


def make_transforms(config: RunConfig) -> TrainTransforms:
    """The transforms of a run: its `jitter` is that of brightness, contrast and saturation."""
    jitter = dict.fromkeys(("brightness", "contrast", "saturation"), config.jitter)
    return TrainTransforms(crop=config.crop, flip=config.flip, rotation=config.rotation, **jitter)


def _about(start: Start | None) -> list[str]:
    if start is None or not start.fresh:
        return []
    return [f"The classifier head starts fresh, since --init has none of its shape: {', '.join(start.fresh)}."]


def steps_per_epoch(config: RunConfig, data: DataSet) -> int:
    """A last partial batch is dropped, but a data set smaller than a batch is one."""
    return max(1, len(data.train) // config.batch_size)


def batch_size_of(config: RunConfig, data: DataSet) -> int:
    """The images of a step in all processes together."""
    return min(config.batch_size, len(data.train))
