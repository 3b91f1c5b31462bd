"""Evaluate an ensemble: its members' own test images, or others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from dign.core.errors import UserError
from dign.data.dataset import DataSet
from dign.data.names import hide_folder_path
from dign.data.sources.folder import has_own_test_split
from dign.evaluation.result_info import RunInfo
from dign.evaluation.subjects import Subject
from dign.models import count_parameters
from dign.runs.ensemble import Ensemble
from dign.runs.folder import Run, load_run
from dign.runs.held_out import leave_out_seen
from dign.runs.hub_config import hub_folder, is_hub_folder
from dign.runs.other_data import RunData, load_data_for


def open_ensemble(
    places: Sequence[str | Path],
    data: str | None = None,
    *,
    split: str = "test",
    label: str | None = None,
    skip_unreadable: bool = False,
) -> tuple[Subject, RunData]:
    """Several runs or hub folders as one model, ready for `evaluate_subject`, and the images to measure it on.

    Args:
        places: Finished run folders or hub folders.
        data: The images, as for `evaluate_run`; by default the runs' own. Hub folders need them named. Images that a
            member was trained or calibrated on are left out; validation images of runs stay in that split.
        split: The split that is to be measured.
        label: Name in tables.
        skip_unreadable: Leave out images of a folder that cannot be read.

    Raises:
        UserError: The members do not agree, or one of them was trained on images that another is tested on.
    """
    ensemble = Ensemble(places, label).eval()
    runs = [load_run(place) for place in places if not is_hub_folder(hub_folder(place))]
    if len(runs) < len(places) and data is None:
        raise UserError("hub folders do not know their test images: name some with `data`, as in `data=cifar10`.")
    found = _shared_images(runs, data, skip_unreadable) if runs else _load_for(ensemble, str(data), skip_unreadable)
    images = found.data
    if ensemble.classes != list(images.classes) or ensemble.image_size != images.image_size:
        raise UserError(f"{ensemble.name} does not fit {images.name}: its classes or the size of its images differ.")
    for place in places:
        images, fewer = leave_out_seen(hub_folder(place), images, split)
        found = RunData(images, (found.left_out or 0) + fewer) if fewer else found
    models = sorted({run.config.model for run in runs}) or ["hub"]
    about = RunInfo(
        name=ensemble.name,
        method=ensemble.method.key,
        title=ensemble.method.title,
        model=models[0] if len(models) == 1 else "several",
        data=hide_folder_path(data or runs[0].config.data),
        parameters=count_parameters(ensemble.model),
        members=tuple(member.name for member in ensemble.members),
    )
    return Subject(ensemble.model, ensemble.method.predict, about), found


def _shared_images(runs: Sequence[Run], data: str | None, skip_unreadable: bool) -> RunData:
    """The images of the first run, if no other run was trained on those of its test split."""
    first = runs[0]
    found = load_data_for(first, data, skip_unreadable=skip_unreadable)
    for other in runs[1:]:
        if data is None and other.config.data != first.config.data:
            raise UserError(
                f"{other.path} was trained on {hide_folder_path(other.config.data)}, but {first.path} on "
                f"{hide_folder_path(first.config.data)}: name the images to measure with `data`."
            )
        same_split = other.info.get("training_sha256") == first.info.get("training_sha256")
        if not has_own_test_split(data or first.config.data) and not same_split:
            raise UserError(
                f"{other.path} was trained on other images of {first.config.data} than {first.path}, so that it may "
                "have seen the test images: name images that none of them was trained on with `data`."
            )
        if _held_out(other) != _held_out(first):
            # one member's validation images are another's training images
            found = replace(found, data=_without_validation(found.data))
    return found


def _held_out(run: Run) -> tuple[float, int]:
    return run.config.validation, run.config.validation_seed


def _load_for(ensemble: Ensemble, data: str, skip_unreadable: bool) -> RunData:
    from dign.data import load

    height, width = ensemble.image_size
    size = height if height == width else None
    found = load(data, size=size, framing=ensemble.framing, skip_unreadable=skip_unreadable)
    return RunData(
        _without_validation(found)
    )  # its members may have been trained on what is cut off for validation here


def _without_validation(data: DataSet) -> DataSet:
    return replace(data, validation=data.validation.select(torch.zeros(0, dtype=torch.long)))
