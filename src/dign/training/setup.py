"""What comes before the first step: every setting is checked, then the run's folder is created."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from dign.augment.train_transforms import TrainTransforms, shrunk_size
from dign.core.errors import UserError, summarize_error
from dign.data.dataset import DataSet
from dign.models import build, measure_channels, spread_indices
from dign.parallel.batch_norm import synchronize_batch_norm
from dign.parallel.devices import describe_device, warn_of_emulation
from dign.parallel.launching import torchrun_job_id
from dign.parallel.team import Team
from dign.runs.calibrate import check_noise
from dign.runs.config import RunConfig, split_methods
from dign.runs.folder import create_run, load_run_data, make_run_method
from dign.runs.held_out import count_seen_by_init
from dign.training.cost import estimate_cpu_seconds, measure_cpu_seconds
from dign.training.data_advice import LONG, give_advice, warn_of_duration
from dign.training.starting_weights import StartingWeights, freeze, load_starting_weights
from dign.training.trackers import check_tracker


def prepare(config: RunConfig, team: Team) -> tuple[DataSet, StartingWeights | None]:
    """Load the data, and the weights to start from if `init` is set; raises for a configuration that cannot work."""
    method = make_run_method(config)
    check_noise(method, config.calibrate)
    first = method.at(0.0)
    check_tracker(config.track)
    data = load_run_data(config)
    if config.keep == "best" and not len(data.validation):
        raise UserError("`keep=best` needs validation images, and there are none: set `validation`, or `keep=last`.")
    team.check_divides(global_batch_size(config, data), config.accumulate)
    with torch.device("meta"):
        model = build(config.model, classes=len(data.classes), image_size=data.image_size)
    if config.small_first:
        _check_small_images(model, config, data.image_size)
    images = global_batch_size(config, data) // team.world_size // config.accumulate
    if first.together and first.cost.backward - first.cost.input_only > 1:
        images = max(images, 2)  # several views of an image share a pass, and batch norm needs two images
    _check_images(model, config, data, images)
    freeze(model, config.freeze, norms=config.freeze_norms)
    if config.sync_batch_norm:
        synchronize_batch_norm(model, team)
    return data, load_starting_weights(config, model)


def _check_images(model: nn.Module, config: RunConfig, data: DataSet, images: int) -> None:
    """Check that the model can be trained on batches of `images` images of this size; `model` is on the meta device."""
    try:
        _pass(model, images, data.image_size)
    except MODEL_ERRORS:
        real = build(config.model, classes=len(data.classes), image_size=data.image_size)
        try:  # some models fail on the meta device alone
            _pass(real, images, data.image_size)
        except MODEL_ERRORS as error:
            size = "x".join(map(str, data.image_size))
            raise UserError(
                f"{config.model} cannot be trained with {images} image{'s' if images > 1 else ''} of {size} at once "
                f"({summarize_error(error).rstrip('.')}): choose another `size`, `batch_size` or `model`."
            ) from error


MODEL_ERRORS = (RuntimeError, AssertionError, ValueError, NotImplementedError)
"""What models raise for images that they cannot process."""


def _pass(model: nn.Module, images: int, size: tuple[int, int]) -> None:
    with torch.no_grad():
        model(torch.zeros(images, 3, *size, device=next(model.parameters()).device))


def _check_small_images(model: nn.Module, config: RunConfig, image_size: tuple[int, int]) -> None:
    small, size = shrunk_size(*image_size), "x".join(map(str, image_size))
    if not all(4 <= less < side for less, side in zip(small, image_size, strict=True)):
        raise UserError(f"Images of {size} are too small to start with smaller ones: leave `small_first` out.")
    try:
        _pass(model, 2, small)
    except MODEL_ERRORS as error:
        reason = summarize_error(error)
        raise UserError(
            f"{config.model} cannot process images smaller than {size} ({reason}): leave `small_first` out."
        ) from error


STATISTICS_IMAGES = 10_000
"""How many training images the mean and standard deviation of the channels are taken from, at most."""


def create_folder(config: RunConfig, out: Path | str, data: DataSet, start: StartingWeights | None, team: Team) -> None:
    """Create the run's folder."""
    chosen = spread_indices(len(data.train), STATISTICS_IMAGES, data.image_size)
    mean, std = (start and start.normalization) or measure_channels(data.train.take, chosen)
    seen = count_seen_by_init(config, data) if start else 0
    facts: dict[str, Any] = {"init": {"sha256": start.digest, "fresh": start.fresh, "seen": seen}} if start else {}
    if team.world_size > 1:
        facts["processes"] = team.world_size
    if torchrun_job_id():
        facts["job"] = torchrun_job_id()
    assert team.device is not None  # set for every team that trains
    notes = _make_notes(config, data, start, team.device)
    if seen:
        notes.append(
            f"{seen} of {len(data.validation)} validation images were training images of {config.init}: validation "
            "looks better than it is, and the model is not calibrated on them. Use `dign calibrate` on other images."
        )
    create_run(out, config, data, mean, std, describe_device(config.precision, team.device), notes=notes, **facts)


def make_transforms(config: RunConfig) -> TrainTransforms:
    """The transforms of a run; its `jitter` applies to brightness, contrast and saturation."""
    jitter = dict.fromkeys(("brightness", "contrast", "saturation"), config.jitter)
    crop = 0 if config.scale else config.crop  # random crops are cut when pictures are decoded
    return TrainTransforms(crop=crop, flip=config.flip, rotation=config.rotation, **jitter)


def _make_notes(config: RunConfig, data: DataSet, start: StartingWeights | None, device: torch.device) -> list[str]:
    """What the user should know before the first step."""
    notes = give_advice(data, RunLength.of(config, data).total, from_scratch=start is None)
    used = split_methods(config.method)
    notes += [
        f"The settings of {name} are ignored: the method is {config.method}."
        for name, table in config.settings.items()
        if table and name not in used
    ]
    if not len(data.validation) and config.calibrate != "none":
        notes.append(
            "Without validation images the model is not calibrated: set `validation` to 0.1, or calibrate it on other "
            "labeled images afterwards (`dign calibrate`)."
        )
    if start is not None and start.fresh:
        notes.append(
            f"The head starts from random weights, since `init` has none of its shape: {', '.join(start.fresh)}."
        )
    if device.type == "cpu":
        notes += warn_of_emulation(config.precision, device)
        notes += warn_of_duration(_estimate_seconds(config, data))
    return notes


def _estimate_seconds(config: RunConfig, data: DataSet) -> float | None:
    """The training time on this CPU: from counted operations, and measured where it may be hours."""
    network = partial(build, config.model, classes=len(data.classes), image_size=data.image_size)
    with torch.device("meta"):
        model = network()
    seconds = estimate_cpu_seconds(config, model, data.image_size, len(data.train))
    if seconds is None or seconds < LONG / 4:
        return seconds
    return measure_cpu_seconds(config, network(), data.image_size, len(data.train))


@dataclass(frozen=True)
class RunLength:
    """How long a run is.

    Attributes:
        batch_size: Images of a step over all processes.
        steps_per_epoch: A last partial batch is dropped; a data set smaller than a batch is one batch.
        total: Steps in all.
    """

    batch_size: int
    steps_per_epoch: int
    total: int

    @classmethod
    def of(cls, config: RunConfig, data: DataSet) -> RunLength:
        steps = steps_per_epoch(config, data)
        return cls(global_batch_size(config, data), steps, config.epochs * steps)


def steps_per_epoch(config: RunConfig, data: DataSet) -> int:
    return max(1, len(data.train) // config.batch_size)


def global_batch_size(config: RunConfig, data: DataSet) -> int:
    return min(config.batch_size, len(data.train))
