"""Evaluate a model as its method predicts, on a split of a data set: finished runs, hub folders, foreign models."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dign.core.errors import UserError
from dign.core.freezing import freeze_temporarily
from dign.core.image_rng import make_placed_generator
from dign.core.pixels import to_float
from dign.core.sampling import spread_indices
from dign.corruptions.benchmark.read import Benchmark, Condition
from dign.data.dataset import DataSet, Split
from dign.data.framing import MIDDLE, Framing
from dign.data.names import hide_folder_path
from dign.evaluation.conclusion import choose_readings, conclude, promises_of
from dign.evaluation.conditions import Conditions
from dign.evaluation.examples import example_predictions, pick_severities
from dign.evaluation.info import count_predictions, describe_evaluation
from dign.evaluation.measure import Predictor, measure, plan_work, split_batches
from dign.evaluation.merge import save_evaluation
from dign.evaluation.predictors import in_precision
from dign.evaluation.result_info import RunInfo
from dign.evaluation.results import Results
from dign.evaluation.summarize import CLEAN
from dign.metrics import TemperatureFit, fit_temperature
from dign.metrics.temperature import PRIOR, log_probabilities
from dign.models import count_parameters
from dign.models.winograd import use_winograd
from dign.parallel.devices import pick_device
from dign.parallel.team import SINGLE_PROCESS, Team
from dign.runs.calibrator import Calibrator, read_calibrator
from dign.runs.folder import Run
from dign.runs.held_out import leave_out_trained, seen_by_init
from dign.runs.other_data import RunData, load_data_for
from dign.runs.seen_images import digest_seen, digest_split, hash_split


@dataclass(frozen=True)
class Subject:
    """What is evaluated: a model, how it predicts, and what results say about it."""

    model: nn.Module
    predict: Callable[[nn.Module, Tensor, torch.Generator], Tensor]
    about: RunInfo
    calibrator: Calibrator | None = None
    """What its predictions are calibrated by."""
    find_seen: Callable[[], frozenset[str]] | None = None
    """Digests of the images that it was trained on, where these are known from elsewhere than the data's splits."""
    framing: Framing = MIDDLE
    """How a picture of any shape is brought to the model's size."""


def open_run(
    run: Run, data: str | None = None, *, skip_unreadable: bool = False, team: Team = SINGLE_PROCESS
) -> tuple[Subject, RunData]:
    """A finished run as its method predicts, and its images.

    Args:
        run: An open run folder, from `dign.runs.load_run`.
        data: Other images than the run's: a data set's name, or "folder:PATH" with the run's classes. Images that the
            run was trained, validated or calibrated on are left out, wherever they are now. By default the run's own.
        skip_unreadable: Leave out images of a folder that cannot be read.
        team: Processes that share the work.

    Raises:
        UserError: The run has not finished, its folder cannot be written to, or its data has changed.
    """
    with team.all_or_none():
        if team.is_rank_zero and not os.access(run.path, os.W_OK):
            raise UserError(f"No permission to write results into {run.path}: copy the run to where you may write.")
        method, model = run.method(), run.model()
        found = load_data_for(run, data, skip_unreadable=skip_unreadable)
        calibrator = read_calibrator(run.path, len(run.classes))
    about = RunInfo(
        name=run.path.resolve().name,
        method=method.key,
        title=method.title,
        model=run.config.model,
        data=hide_folder_path(run.config.data if found.is_own or data is None else data),
        seed=run.config.seed,
        parameters=count_parameters(run.untrained_model()),
    )
    seen = (lambda: digest_seen(run.data()).validation) if seen_by_init(run) else None
    return Subject(model, method.predict, about, calibrator, seen, run.framing), found


def evaluate_run(
    run: Run,
    conditions: Conditions | Benchmark | None = None,
    *,
    split: str = "test",
    device: str = "auto",
    batch_size: int = 500,
    precision: str = "32",
    temperature: bool = False,
    images: int | None = None,
    data: str | None = None,
    skip_unreadable: bool = False,
    keep_earlier: bool = True,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
    report: Callable[[str], None] = lambda text: None,
) -> Results:
    """Evaluate a finished run as its method predicts; writes `results.json` and `examples.json` into its folder.

    Results of an earlier evaluation under the same circumstances are merged with these, condition by condition; others
    are kept beside them, as `results-NAME.json`.

    Args:
        run: An open run folder, from `dign.runs.load_run`.
        conditions: Which corruptions at which severities, or an open benchmark; by default all at severities 1 to 5.
        split: "test", "validation" or "train".
        device: "auto", "cpu", "cuda", ...
        batch_size: Images predicted at once; changes speed and memory, not results.
        precision: Of the network's arithmetic: "32", or mixed "bf16" or "16", which a GPU, or a CPU that has it, does
            faster; a few answers in a thousand may differ.
        temperature: Also fit a temperature on the validation split, and give the scores at it.
        images: Measure no more than this many images, spread evenly over the split; by default all.
        data: Other images than the run's, as of `open_run`.
        skip_unreadable: Leave out images of a folder that cannot be read.
        keep_earlier: Whether results of an earlier evaluation are merged or kept beside; else they are replaced.
        team: Processes that share the work.
        progress: Called with the number of predictions done and of all predictions.
        report: Called with sentences about what was left out, and where results were stored.

    Returns:
        What was measured now.

    Raises:
        UserError: The run has not finished, its folder cannot be written to, or its data has changed.
    """
    subject, found = open_run(run, data, skip_unreadable=skip_unreadable, team=team)
    if run.config.winograd:
        use_winograd(subject.model)
    if found.is_own and (split == "validation" or temperature):
        found = replace(found, data=leave_out_trained(run, found.data))
    found = replace(found, data=limit_split(found.data, split, images))
    results, examples = evaluate_subject(
        subject,
        found.data,
        conditions,
        split=split,
        device=device,
        batch_size=batch_size,
        precision=precision,
        temperature=temperature,
        team=team,
        progress=progress,
    )
    results = note_images(results, found, images)
    if found.left_out is not None:
        report(
            f"{found.left_out} images are left out, since the run was trained, validated or calibrated on them."
            if found.left_out
            else "No image is left out: the run was trained, validated and calibrated on none of them."
        )
    own = subject.calibrator
    if split == "validation" and own is not None and own.data == hide_folder_path(run.config.data):
        report("The model was calibrated on these images: confidences and promises hold better here than elsewhere.")
    if skipped := found.describe_skipped():
        report(skipped)
    with team.all_or_none():
        if team.is_rank_zero:
            save_evaluation(run.path, results, examples, report, keep_earlier=keep_earlier)
    return results


def evaluate_subject(
    subject: Subject,
    data: DataSet,
    conditions: Conditions | Benchmark | None = None,
    *,
    split: str = "test",
    device: str = "auto",
    batch_size: int = 500,
    precision: str = "32",
    temperature: bool = False,
    team: Team = SINGLE_PROCESS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[Results, dict[str, Any]]:
    """Results, and a few images with predictions for the report to show (made by the first process of a team only).

    Args: as of `evaluate_run`.
    """
    conditions = Conditions() if conditions is None else conditions
    started = time.monotonic()
    images: Split = getattr(data, split)
    _check_splits(data, split, temperature)
    if temperature:
        _refuse_seen(subject, data)
    target = team.device or pick_device(device)
    model: nn.Module = subject.model.to(target, memory_format=torch.channels_last)  # type: ignore[call-overload]
    predict = in_precision(partial(subject.predict, model), model, precision, target)
    total = count_predictions(conditions, len(images)) or 0
    with freeze_temporarily(model):
        fit = fit_split_temperature(predict, data.validation, target, batch_size, team) if temperature else None
        own = subject.calibrator
        promises = promises_of(own)
        measured = measure(
            predict,
            plan_work(split_batches(images, batch_size), conditions, batch_size, target),
            seed=conditions.seed or 0,
            device=target,
            readings=choose_readings(own, fit.value if fit else None),
            promises=promises,
            team=team,
            progress=lambda done: progress(min(done, total), total),
        )
        shown = list(_shown_conditions(conditions, images)) if team.is_rank_zero else []
        calibrated = (lambda x, generator: own.calibrate(predict(x, generator))) if own else predict
        examples = example_predictions(calibrated, shown, data.classes, data.image_size, device=target)
    info = describe_evaluation(split, measured.counts[CLEAN], data.image_size, conditions, target, started, precision)
    info = replace(info, images_sha256=hash_split(images))
    return conclude(measured, subject.about, info, data.classes, own, promises, fit, "validation"), examples


def note_images(results: Results, found: RunData, limit: int | None) -> Results:
    """The results with what they are not of: images that were left out or skipped, or beyond a limit."""
    skipped = len(found.data.skipped) or None
    return replace(
        results, evaluation=replace(results.evaluation, left_out=found.left_out, skipped=skipped, limit=limit)
    )


def limit_split(data: DataSet, split: str, images: int | None) -> DataSet:
    """The data with at most `images` images in a split, at equal distances: it may be sorted by class."""
    whole: Split = getattr(data, split)
    if images is None or images >= len(whole):
        return data
    limited: dict[str, Any] = {split: whole.select(torch.tensor(spread_indices(len(whole), images)))}
    return replace(data, **limited)


def _check_splits(data: DataSet, split: str, temperature: bool) -> None:
    if len(getattr(data, split)) == 0:
        raise UserError(f"The {split} split of {data.name} has no images to evaluate: choose another split.")
    if temperature and split == "validation":
        raise UserError("The temperature is fitted on the validation split: evaluate another split, or fit none.")
    if temperature and len(data.validation) == 0:
        raise UserError(
            "A temperature is fitted on validation images, and there are none: train with a validation share of 0.1, "
            "or fit none."
        )


def _refuse_seen(subject: Subject, data: DataSet) -> None:
    """A temperature that was fitted on training images makes the model surer than it may be."""
    if subject.find_seen is None:
        return
    seen = subject.find_seen()
    known = sum(digest in seen for digest in digest_split(data.validation))
    if known:
        raise UserError(
            f"{subject.about.name} was trained on {known} of the {len(data.validation)} validation images of "
            f"{data.name}: a temperature fitted on them would be wrong. Calibrate the model on other images, "
            "`dign calibrate`, or fit no temperature."
        )


def describe_unknown_training(subject: Subject) -> str:
    """What to say before a temperature is fitted for a model that dign has not trained."""
    return (
        f"dign does not know which images {subject.about.name} was trained on, and a temperature fitted on images that "
        "it has seen is too low, which makes it overconfident: name images that it has not seen with `data`."
    )


def _shown_conditions(conditions: Conditions | Benchmark, split: Split) -> Iterator[Condition]:
    """The conditions to give examples of: clean, and every corruption at one or two of its severities."""
    yield Condition("clean", 0, _Clean(split), split.labels)
    severities = pick_severities(conditions.severities)
    if isinstance(conditions, Benchmark):
        yield from (condition for condition in conditions if condition.severity in severities)
        return
    for name in conditions.corruptions:
        for severity in severities:
            yield Condition(name, severity, _Corrupted(split, name, severity, conditions), split.labels)


@dataclass(frozen=True)
class _Clean:
    """Images of a split, read when a slice of them is asked for."""

    split: Split

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, part: slice) -> Tensor:
        return self.split.take(part)


@dataclass(frozen=True)
class _Corrupted:
    """Images of a split under one corruption, made when a slice of them is asked for."""

    split: Split
    corruption: str
    severity: int
    conditions: Conditions

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, part: slice) -> Tensor:
        first = part.indices(len(self))[0]
        return self.conditions.corrupt(self.split.take(part), self.corruption, self.severity, first)


@torch.no_grad()
def fit_split_temperature(
    predict: Predictor, split: Split, device: torch.device, batch_size: int, team: Team = SINGLE_PROCESS
) -> TemperatureFit:
    """The temperature for the predictions on a split, clean, with the prior that a model's own is fitted with."""
    found: dict[int, Tensor] = {}
    for first in range(team.rank * batch_size, len(split), team.world_size * batch_size):
        images = to_float(split.take(slice(first, first + batch_size)).to(device))
        probabilities = predict(images, make_placed_generator(0, "temperature", first, device))
        found[first] = log_probabilities(probabilities).cpu()
    gathered = {first: scores for part in team.gather(found) for first, scores in part.items()}
    scores = torch.cat([gathered[first] for first in sorted(gathered)])
    return fit_temperature(scores, split.labels, PRIOR)
